// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/sides.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"

namespace fungi {
namespace {

size_t steps(size_t side, size_t patch, size_t stride) { return (side - patch) / stride + 1; }

}  // namespace

void check_side(const Architecture& a, size_t side, const std::string& place) {
  if (side == 0) return;
  if (a.input != InputKind::image)
    fail(fmt::format("expected a model of pictures, whose size can change; a {} reads {} of one "
                     "size",
                     a.family, to_string(a.input)),
         place, "leave it out");
  const size_t most = std::min(a.input_h, a.input_w);
  if (side > most)
    fail(fmt::format("expected at most the {} pixels of the model's input, found {}", most, side),
         place, "0 is the model's own; `stated_facts[size]` enlarges that");
  const size_t patch = std::max(a.patch_h, a.patch_w);
  if (side % a.patch_h || side % a.patch_w)
    fail(fmt::format("expected a multiple of the model's patch of {} pixels, found {}", patch,
                     side),
         place, fmt::format("use {} or {}", std::max(side / patch, size_t{1}) * patch,
                            std::min((side / patch + 1) * patch, most)));
}

size_t patches_at(const Architecture& a, size_t side) {
  if (side == 0) return a.patches();
  return steps(side, a.patch_h, a.stride_h) * steps(side, a.patch_w, a.stride_w);
}

Architecture at_side(Architecture a, size_t side) {
  if (side) a.input_h = a.input_w = side;
  return a;
}

}  // namespace fungi
