// SPDX-License-Identifier: Apache-2.0
// Tables for AVX2 with FMA: sixteen 256-bit registers hold 6 x 16 sums, two of B and one of A.
#define FUNGI_VECTOR_BYTES 32
#define FUNGI_TILE_ROWS 6
#define FUNGI_TILE_DEPTH 256
#define FUNGI_L2_BYTES (512 * 1024)
#include "fungi/kernel/body.h"
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

constinit const Kernel avx2_f32 = table_of<float>("avx2-f32");
constinit const Kernel avx2_bf16 = table_of<bfloat16>("avx2-bf16");
constinit const ByteProducts avx2_int8 = byte_products("avx2-int8");

}  // namespace fungi::kernel
