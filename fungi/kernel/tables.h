// SPDX-License-Identifier: Apache-2.0
// The tables that the instruction-set files export; only kernel.cpp chooses between them.
// Internal to this room.
#pragma once

#include "fungi/kernel/table.h"

namespace fungi::kernel {

extern const Kernel generic_f32, generic_bf16;
extern const Kernel avx2_f32, avx2_bf16;
extern const Kernel avx512_f32, avx512_bf16;
extern const Kernel avx512_pairs_bf16;
extern const Kernel amx_bf16;

}  // namespace fungi::kernel
