// SPDX-License-Identifier: Apache-2.0
// The code of kernel/avx512.cpp with its 512-bit vectors lowered to AVX2.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (64 * 1024)  // small: several blocks even in small tests
#include "fungi/kernel/body.h"

namespace fungi::kernel {

extern const Kernel emulated_avx512_f32, emulated_avx512_bf16;
constinit const Kernel emulated_avx512_f32 = table_of<float>("emulated-avx512-f32");
constinit const Kernel emulated_avx512_bf16 = table_of<bfloat16>("emulated-avx512-bf16");

}  // namespace fungi::kernel
