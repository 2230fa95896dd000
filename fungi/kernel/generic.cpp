// SPDX-License-Identifier: Apache-2.0
// Tables for any x86-64: 128-bit registers, no fused multiply-add.
#define FUNGI_VECTOR_BYTES 16
#define FUNGI_TILE_ROWS 4
#define FUNGI_TILE_DEPTH 256
#define FUNGI_L2_BYTES (256 * 1024)
#include "fungi/kernel/body.h"
#include "fungi/kernel/gemm_bytes.h"

namespace fungi::kernel {

constinit const Kernel generic_f32 = table_of<float>("generic-f32");
constinit const Kernel generic_bf16 = table_of<bfloat16>("generic-bf16");
constinit const ByteProducts generic_int8 = byte_products("generic-int8");

}  // namespace fungi::kernel
