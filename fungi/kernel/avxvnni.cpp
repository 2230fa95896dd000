// SPDX-License-Identifier: Apache-2.0
// Products of int8 for AVX2 with AVX-VNNI: those of AVX512_VNNI on 256-bit registers.
#define FUNGI_VECTOR_BYTES 32
#define FUNGI_TILE_ROWS 6
#define FUNGI_TILE_DEPTH 256
#define FUNGI_L2_BYTES (512 * 1024)
#define FUNGI_VNNI
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

constinit const ByteProducts avxvnni_int8 = byte_products("avx2-vnni-int8");

}  // namespace fungi::kernel
