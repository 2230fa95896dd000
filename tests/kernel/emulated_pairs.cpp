// SPDX-License-Identifier: Apache-2.0
// The code of kernel/avx512bf16.cpp with its 512-bit vectors lowered to AVX2 and each product of
// pairs made of two multiply-adds.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (64 * 1024)  // small: several blocks even in small tests
#define FUNGI_PAIRS
#include "fungi/kernel/body.h"

namespace fungi::kernel {

extern const Kernel emulated_pairs_bf16;
constinit const Kernel emulated_pairs_bf16 = table_of<bfloat16>("emulated-pairs-bf16");

}  // namespace fungi::kernel
