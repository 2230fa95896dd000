// SPDX-License-Identifier: Apache-2.0
// The products of avx512vnni.cpp for processors that have AVX512_BF16, too, and round to bf16 in
// one instruction.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (1024 * 1024)
#define FUNGI_VNNI
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

constinit const ByteProducts avx512vnnibf16_int8 = byte_products("avx512-vnni-pairs-int8");

}  // namespace fungi::kernel
