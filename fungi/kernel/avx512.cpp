// SPDX-License-Identifier: Apache-2.0
// Tables for AVX-512 (F, BW, DQ, VL): thirty-two 512-bit registers hold 14 x 32 sums, two of B and
// one of A.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (1024 * 1024)
#include "fungi/kernel/body.h"
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

constinit const Kernel avx512_f32 = table_of<float>("avx512-f32");
constinit const Kernel avx512_bf16 = table_of<bfloat16>("avx512-bf16");
constinit const ByteProducts avx512_int8 = byte_products("avx512-int8");

}  // namespace fungi::kernel
