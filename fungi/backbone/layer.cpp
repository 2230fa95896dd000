// SPDX-License-Identifier: Apache-2.0
// The layers whose gradients can be asked for: their names and their sizes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/error.h"

namespace fungi {

LayerId LayerId::parse(std::string_view name, size_t depth) {
  const std::string hint = fmt::format(
      "use blocks.N.attn.qkv, .attn.proj, .mlp.fc1 or .mlp.fc2 with N from 0 to {} (or -1 for the "
      "last)",
      depth - 1);
  const std::string text(name);
  long block = 0;
  const char *begin = text.c_str() + std::min<size_t>(7, text.size()),
             *end = text.c_str() + text.size();
  const auto [next, error] = std::from_chars(begin, end, block);
  if (!text.starts_with("blocks.") || error != std::errc{})
    fail(fmt::format("'{}' is not a layer", name), "layer", hint);
  if (block < 0) block += long(depth);
  if (block < 0 || size_t(block) >= depth)
    fail(fmt::format("'{}' is outside the {} blocks", name, depth), "layer", hint);
  const std::string_view part(next, size_t(end - next));
  for (const Part p : {Part::qkv, Part::proj, Part::fc1, Part::fc2}) {
    const LayerId id{size_t(block), p};
    if (id.name() == fmt::format("blocks.{}{}", block, part)) return id;
  }
  fail(fmt::format("'{}' is not a layer", name), "layer", hint);
}

std::string LayerId::name() const {
  static constexpr const char* parts[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};
  return fmt::format("blocks.{}.{}", block, parts[size_t(part)]);
}

namespace {

constexpr LayerId::Part kParts[] = {LayerId::Part::qkv, LayerId::Part::proj, LayerId::Part::fc1,
                                    LayerId::Part::fc2};

// A star stands for any characters, none among them.
bool matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t rest = star; rest <= text.size(); ++rest)
    if (matches(pattern.substr(star + 1), text.substr(rest))) return true;
  return false;
}

}  // namespace

std::vector<LayerId> parse_layers(const std::vector<std::string>& patterns, size_t depth) {
  std::vector<LayerId> layers;
  for (const std::string& pattern : patterns) {
    if (pattern.find('*') == std::string::npos) {
      layers.push_back(LayerId::parse(pattern, depth));
      continue;
    }
    if (std::count(pattern.begin(), pattern.end(), '*') > 3)
      fail(fmt::format("'{}' has more stars than a layer's name has parts", pattern), "layers",
           "use e.g. 'blocks.*.attn.proj'");
    const size_t before = layers.size();
    for (size_t block = 0; block < depth; ++block)
      for (const LayerId::Part part : kParts)
        if (const LayerId id{block, part}; matches(pattern, id.name())) layers.push_back(id);
    if (layers.size() == before)
      fail(fmt::format("'{}' names no layer of the {} blocks", pattern, depth), "layers",
           "layers are blocks.N.attn.qkv, .attn.proj, .mlp.fc1 and .mlp.fc2; a star stands for "
           "anything: 'blocks.*.mlp.fc2'");
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

namespace {

// Nothing where it has none. All blocks are alike: one tells, also where their number is unknown.
CanonicalTensor tensor_of(Architecture a, LayerId layer, const char* which) {
  a.depth = 1, layer.block = 0;
  for (CanonicalTensor& t : canonical_tensors(a))
    if (t.name == layer.name() + which) return std::move(t);
  return {};
}

}  // namespace

size_t layer_inputs(const Architecture& a, const LayerId& layer) {
  return tensor_of(a, layer, ".weight").cols;
}

size_t layer_outputs(const Architecture& a, const LayerId& layer) {
  return tensor_of(a, layer, ".weight").rows;
}

bool layer_bias(const Architecture& a, const LayerId& layer) {
  return tensor_of(a, layer, ".bias").cols > 0;
}

}  // namespace fungi
