// SPDX-License-Identifier: Apache-2.0
// The bf16 table for AVX-512 with AVX512_BF16: products of pairs, twice as many per instruction as
// f32 has.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (1024 * 1024)
#define FUNGI_PAIRS
#include "fungi/kernel/body.h"

namespace fungi::kernel {

constinit const Kernel avx512_pairs_bf16 = table_of<bfloat16>("avx512-pairs-bf16");

}  // namespace fungi::kernel
