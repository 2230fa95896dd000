// SPDX-License-Identifier: Apache-2.0
// What the name of one of timm's architectures tells that tensors do not. Internal to this room.
#pragma once

#include <span>
#include <string_view>

#include "fungi/backbone/names.h"

namespace fungi {

struct TimmArchitecture {
  size_t width, heads;
  kernel::Activation activation;
  bool mean;  // of the patches is the embedding; otherwise the class token
  float norm_epsilon;
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
