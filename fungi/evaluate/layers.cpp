// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/layers.h"

#include <algorithm>
#include <charconv>

#include "fungi/store/manifest.h"

namespace fungi {
namespace {

// "blocks.3.mlp.fc2" → 3 and "mlp.fc2"; false for anything else.
bool parse_layer(std::string_view layer, size_t& block, std::string& part) {
  constexpr std::string_view kStart = "blocks.";
  if (!layer.starts_with(kStart)) return false;
  const char* end = layer.data() + layer.size();
  const auto [next, error] = std::from_chars(layer.data() + kStart.size(), end, block);
  if (error != std::errc{} || next == end || *next != '.') return false;
  part.assign(next + 1, end);
  return true;
}

}  // namespace

std::vector<LayerCurve> layer_curves(const std::vector<std::pair<std::string, double>>& results) {
  std::vector<LayerCurve> curves;
  for (const auto& [features, value] : results) {
    const std::vector<std::string> blocks = split_features(features);
    if (blocks.size() > 2) continue;
    const std::string gradient = split_weight(blocks.back(), "features").second;
    const auto [objective, layer] = split_layer(gradient);
    LayerCurve one{.objective = std::string(objective),
                   .part = {},
                   .beside = blocks.size() == 2 ? blocks.front() : "",
                   .blocks = {},
                   .values = {}};
    size_t block = 0;
    if (!parse_layer(layer, block, one.part)) continue;
    auto curve = std::find_if(curves.begin(), curves.end(), [&](const LayerCurve& c) {
      return c.objective == one.objective && c.part == one.part && c.beside == one.beside;
    });
    if (curve == curves.end()) curve = curves.insert(curves.end(), std::move(one));
    const auto at = std::lower_bound(curve->blocks.begin(), curve->blocks.end(), block);
    curve->values.insert(curve->values.begin() + (at - curve->blocks.begin()), value);
    curve->blocks.insert(at, block);
  }
  return curves;
}

}  // namespace fungi
