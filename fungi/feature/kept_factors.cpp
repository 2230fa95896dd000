// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/kept_factors.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/feature/settings.h"

namespace fungi {
std::vector<std::string> gradient_blocks(const StoreSpec& spec) {
  std::vector<std::string> names = feature_names(spec);
  std::erase(names, "embedding");
  return names;
}

KeptFactors::KeptFactors(const Store& store, const std::string& objective)
    : store_(store), b_(factor_block(objective, 'b')), a_(factor_block(objective, 'a')) {
  const StoreSpec& spec = store.manifest().spec;
  const std::string place = store.folder().string();
  const StoreBlock *b = find_block(spec.blocks, b_), *a = find_block(spec.blocks, a_);
  if (!b || !a)
    fail(fmt::format("the store holds no factors of '{}' (blocks {} and {})", objective, b_, a_),
         place, "extract again with `keep_factors`");
  // Gradients may be very small numbers: float16 loses some of them without a sign.
  if (spec.type != StoreType::float32)
    fail("the factors were rounded to float16, which small gradients do not survive", place,
         "extract again with `keep_factors` and `storage=float32`");
  const Settings settings = read_settings(spec, place);
  if (!settings.gradient)
    fail("the settings name no layer, whose shape the factors need", place,
         "restore manifest.json");
  layer_ = settings.gradient->shape;
  terms_ = b->rows;
  if (a->rows != terms_ || b->width != layer_.outputs || a->width != layer_.inputs)
    fail(fmt::format("expected factors of a {} x {} layer, found {} x {} numbers in {} and {} x {} "
                     "in {}",
                     layer_.outputs, layer_.inputs, b->rows, b->width, b_, a->rows, a->width, a_),
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
