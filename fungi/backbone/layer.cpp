// SPDX-License-Identifier: Apache-2.0
// The layers whose gradients can be asked for: their names and their sizes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fungi/backbone/backbone.h"
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
  for (Part p : {Part::qkv, Part::proj, Part::fc1, Part::fc2}) {
    const LayerId id{size_t(block), p};
    if (id.name() == fmt::format("blocks.{}{}", block, part)) return id;
  }
  fail(fmt::format("'{}' is not a layer", name), "layer", hint);
}

std::string LayerId::name() const {
  static constexpr const char* parts[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};
  return fmt::format("blocks.{}.{}", block, parts[size_t(part)]);
}

size_t layer_inputs(const Architecture& a, const LayerId& layer) {
  switch (layer.part) {
    case LayerId::Part::proj:
      return a.attention_width();
    case LayerId::Part::fc2:
      return a.mlp_hidden;
    default:
      return a.width;
  }
}

size_t layer_outputs(const Architecture& a, const LayerId& layer) {
  switch (layer.part) {
    case LayerId::Part::qkv:
      return 3 * a.attention_width();
    case LayerId::Part::fc1:
      return a.mlp_hidden * (a.gated_mlp ? 2 : 1);
    default:
      return a.width;
  }
}

bool layer_bias(const Architecture& a, const LayerId& layer) {
  return layer.part == LayerId::Part::qkv ? a.qkv_bias : a.linear_bias;
}

}  // namespace fungi
