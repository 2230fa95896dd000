// SPDX-License-Identifier: Apache-2.0
// The code of kernel/amx.cpp on emulated tiles and 512-bit vectors lowered to AVX2, so that
// packing, tails and the delayed epilogue are tested on machines without AMX.
#define FUNGI_EMULATE_TILES
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (64 * 1024)  // small: several groups of panels even in small tests
#include "fungi/kernel/body_tiles.h"

namespace fungi::kernel {

extern const Kernel emulated_amx_bf16;
constinit const Kernel emulated_amx_bf16 = tile_table("emulated-amx-bf16");
extern const ByteProducts emulated_amx_int8;
constinit const ByteProducts emulated_amx_int8 = tile_byte_products("emulated-amx-int8");

}  // namespace fungi::kernel
