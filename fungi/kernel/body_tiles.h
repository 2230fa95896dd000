// SPDX-License-Identifier: Apache-2.0
// The AMX table: the bf16 table of body.h with GEMM, attention and the ceiling on tiles.
// Internal to this room.
#pragma once

#include "fungi/kernel/attention_tiles.h"
#include "fungi/kernel/body.h"
#include "fungi/kernel/gemm_byte_tiles.h"

namespace fungi::kernel {
namespace {

// Factor: bfloat16, or uint8_t, of which a tile holds twice as many.
template <class Factor>
double tile_multiply_add_rounds(const float* random, size_t rounds) noexcept {
  alignas(64) bfloat16 tiles[4 * kTileElements];
  for (size_t i = 0; i < 4 * kTileElements; i += kLanes)
    store_elements(tiles + i, kLanes, load(random + i));
  written();
  tile_config();
  tile_load<4>(tiles, 64);
  tile_load<5>(tiles + kTileElements, 64);
  tile_load<6>(tiles + 2 * kTileElements, 64);
  tile_load<7>(tiles + 3 * kTileElements, 64);
  for (size_t i = 0; i < rounds; ++i) {
    tile_multiply<0, 4, 6>(Factor{});
    tile_multiply<1, 4, 7>(Factor{});
    tile_multiply<2, 5, 6>(Factor{});
    tile_multiply<3, 5, 7>(Factor{});
  }
  tile_release();
  return double(rounds) * double(4 * 2 * kTile * kTileElements * sizeof(bfloat16) / sizeof(Factor));
}

constexpr Kernel tile_table(const char* name) {
  Kernel t = common_table<bfloat16>(name);
  t.packed_bytes = tile_packed_bytes;
  t.pack = tile_pack;
  t.gemm_scratch = tile_gemm_scratch;
  t.attention_scratch = tile_attention_scratch;
  t.gemm = tile_gemm;
  t.attention = tile_attention;
  t.multiply_add_rounds = tile_multiply_add_rounds<bfloat16>;
  return t;
}

constexpr ByteProducts tile_byte_products(const char* name) {
  return {name,
          tile_byte_packed_bytes,
          tile_byte_pack,
          tile_byte_pack_smoothed,
          tile_byte_scratch,
          tile_byte_gemm,
          tile_multiply_add_rounds<uint8_t>};
}

}  // namespace
}  // namespace fungi::kernel
