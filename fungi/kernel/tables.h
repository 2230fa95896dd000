// SPDX-License-Identifier: Apache-2.0
// The tables that the instruction-set files export; only kernel.cpp chooses between them.
// Internal to this room.
#pragma once

#include "fungi/kernel/table.h"

namespace fungi::kernel {

// What a table of int8 has of its own; all else is that of a bf16 table.
struct ByteProducts {
  const char* name;
  decltype(Kernel::packed_bytes) packed_bytes;
  decltype(Kernel::pack) pack;
  decltype(Kernel::pack_smoothed) pack_smoothed;
  decltype(Kernel::gemm_scratch) gemm_scratch;
  decltype(Kernel::gemm) gemm;
  decltype(Kernel::multiply_add_rounds) multiply_add_rounds;
};
constexpr Kernel with_bytes(Kernel table, const ByteProducts& products) {
  table.name = products.name;
  table.precision = Precision::int8;
  table.packed_bytes = products.packed_bytes;
  table.pack = products.pack;
  table.pack_smoothed = products.pack_smoothed;
  table.gemm_scratch = products.gemm_scratch;
  table.gemm = products.gemm;
  table.multiply_add_rounds = products.multiply_add_rounds;
  return table;
}

extern const Kernel generic_f32, generic_bf16;
extern const Kernel avx2_f32, avx2_bf16;
extern const Kernel avx512_f32, avx512_bf16;
extern const Kernel avx512_pairs_bf16;
extern const Kernel amx_bf16;
extern const ByteProducts generic_int8, avx2_int8, avxvnni_int8, avx512_int8, avx512vnni_int8,
    avx512vnnibf16_int8, amx_int8;

}  // namespace fungi::kernel
