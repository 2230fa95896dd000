// SPDX-License-Identifier: Apache-2.0
// The code of kernel/avx512vnni.cpp with its 512-bit vectors lowered to AVX2 and every product of
// bytes by itself.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 48  // small, as the next: several blocks even in small tests
#define FUNGI_L2_BYTES (64 * 1024)
#define FUNGI_VNNI
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

extern const ByteProducts emulated_vnni_int8;
constinit const ByteProducts emulated_vnni_int8 = byte_products("emulated-vnni-int8");

}  // namespace fungi::kernel
