// SPDX-License-Identifier: Apache-2.0
// What the name of one of timm's architectures tells that tensors do not. Internal to this room.
#pragma once

#include <span>
#include <string_view>

#include "fungi/backbone/names.h"

namespace fungi {

struct TimmRotary {
  float theta;  // 0: no rotary positions
  size_t grid;
  float offset;
  bool columns_first, centred;
};

struct TimmArchitecture {
  size_t width, heads;
  kernel::Activation activation;
  Pooling pooling;
  float norm_epsilon;
  bool bare;          // no norm comes after the blocks
  size_t pool_heads;  // of attention that pools
  size_t input;       // the side of its pictures, where no table of positions tells it
  TimmRotary rotary;
  std::string_view names;  // a blank before and after each
};

// timm_table.cpp, which a script makes.
std::span<const TimmArchitecture> timm_architectures();
// Those that have the same tensors and are computed in another way: a blank before and after each.
std::string_view other_timm_architectures();

// The small ViT of timm before 0.5, by its tensors. It shares a name with another one.
bool is_early_small(const Architecture& a);

// The architecture that was stated, that config.json names, or else with whose name the file's own
// name begins; null where none does that is known here. Errors: it is computed in another way, or
// its width is another one (but a file may be called anything).
const TimmArchitecture* find_timm_architecture(const NameReader& names, const Architecture& a);

}  // namespace fungi
