// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/kept_factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fungi/backbone/backbone.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

// The layer's shape, from what the manifest says about the architecture.
LayerShape layer_of(const Store& store) {
  const StoreSpec& spec = store.manifest().spec;
  const std::string place = store.folder().string();
  const store::Json facts = store::parse(spec.architecture, place);
  const store::Json settings = store::parse(spec.settings, place);
  const auto text = [&](const store::Json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_string())
      fail(fmt::format("the manifest does not say '{}', which the shape of the layer needs", name),
           place, "extract again with `keep_factors`");
    return found->get<std::string>();
  };
  const auto number = [&](const char* name) {
    const std::string digits = text(facts, name);
    size_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value == 0)
      fail(fmt::format("expected a number as '{}' of the architecture, found '{}'", name, digits),
           place, "restore manifest.json");
    return value;
  };
  Architecture a;
  a.width = number("width");
  a.heads = number("heads");
  a.head_dim = number("head_dim");
  a.mlp_hidden = number("mlp_hidden");
  a.gated_mlp = text(facts, "activation").ends_with("gated");
  a.linear_bias = !facts.contains("linear_bias");  // stated only where there is none
  const LayerId layer = LayerId::parse(text(settings, "layer"), number("depth"));
  return {layer_outputs(a, layer), layer_inputs(a, layer), layer_bias(a, layer)};
}

size_t width_of(const StoreSpec& spec, const std::string& name) {
  const StoreBlock* block = find_block(spec.blocks, name);
  return block ? block->width : 0;
}

}  // namespace

std::vector<std::string> gradient_blocks(const StoreSpec& spec) {
  std::vector<std::string> names = feature_names(spec);
  std::erase(names, "embedding");
  return names;
}

KeptFactors::KeptFactors(const Store& store, const std::string& objective)
    : store_(store), b_(factor_block(objective, 'b')), a_(factor_block(objective, 'a')) {
  const StoreSpec& spec = store.manifest().spec;
  const std::string place = store.folder().string();
  const size_t b = width_of(spec, b_), a = width_of(spec, a_);
  if (b == 0 || a == 0)
    fail(fmt::format("the store holds no factors of '{}' (blocks {} and {})", objective, b_, a_),
         place, "extract again with `keep_factors`");
  // Gradients may be very small numbers: float16 loses some of them without a sign.
  if (spec.type != StoreType::float32)
    fail("the factors were rounded to float16, which small gradients do not survive", place,
         "extract again with `keep_factors` and `storage=float32`");
  layer_ = layer_of(store);
  terms_ = b / layer_.outputs;
  if (terms_ * layer_.outputs != b || terms_ * layer_.inputs != a)
    fail(fmt::format("expected factors of a {} x {} layer, found {} columns in {} and {} in {}",
                     layer_.outputs, layer_.inputs, b, b_, a, a_),
         place, "restore manifest.json, or extract again with `keep_factors`");
}

FactorRows KeptFactors::read(std::span<const size_t> rows) const {
  FactorRows out;
  out.b = store_.gather(b_, rows);
  out.a = store_.gather(a_, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    // Terms that were zero were left out by the extraction and are zeros at the end here.
    const float* b = out.b.row(i);
    size_t length = out.b.cols();
    while (length > 0 && b[length - 1] == 0) --length;
    const size_t terms = (length + layer_.outputs - 1) / layer_.outputs;
    out.samples.push_back({{b, terms, layer_.outputs}, {out.a.row(i), terms, layer_.inputs}});
  }
  return out;
}

}  // namespace fungi
