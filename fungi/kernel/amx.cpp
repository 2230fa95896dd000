// SPDX-License-Identifier: Apache-2.0
// The bf16 table for AMX, and products of int8: products on tiles, everything else on 512-bit
// registers.
#define FUNGI_VECTOR_BYTES 64
#define FUNGI_TILE_ROWS 14
#define FUNGI_TILE_DEPTH 192
#define FUNGI_L2_BYTES (2048 * 1024)
#include "fungi/kernel/body_tiles.h"

namespace fungi::kernel {

constinit const Kernel amx_bf16 = tile_table("amx-bf16");
constinit const ByteProducts amx_int8 = tile_byte_products("amx-int8");

}  // namespace fungi::kernel
