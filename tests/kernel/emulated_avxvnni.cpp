// SPDX-License-Identifier: Apache-2.0
// The code of kernel/avxvnni.cpp with every product of bytes by itself.
#define FUNGI_VECTOR_BYTES 32
#define FUNGI_TILE_ROWS 6
#define FUNGI_TILE_DEPTH 64
#define FUNGI_L2_BYTES (64 * 1024)
#define FUNGI_VNNI
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

extern const ByteProducts emulated_avxvnni_int8;
constinit const ByteProducts emulated_avxvnni_int8 = byte_products("emulated-avx2-vnni-int8");

}  // namespace fungi::kernel
