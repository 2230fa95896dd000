// SPDX-License-Identifier: Apache-2.0
// Kept factors are blocks with a row for each term; what does not fit the layer is refused.
#include "fungi/feature/kept_factors.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/factor_store.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

TEST(KeptFactors, AreRowsOfABlock) {
  const test::TemporaryFolder tmp;
  test::write_factor_store(tmp / "s", 20, 1);
  const Store store = Store::open(tmp / "s");
  const StoreBlock* b = find_block(store.manifest().spec.blocks, "simclr_factors_b");
  EXPECT_EQ(*b, (StoreBlock{"simclr_factors_b", test::kOutputs, 7}));
  const KeptFactors kept(store, "simclr");
  EXPECT_EQ(kept.terms(), 7u);
  const std::vector<size_t> rows{11, 3};
  const FactorRows read = kept.read(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const test::MadeSample made = test::made_sample(1, rows[i]);
    const GradientFactors& found = read.samples[i];
    ASSERT_EQ(found.b.rows, rows[i] % 3 == 2 ? 3u : 7u) << "without terms that are zero";
    for (size_t v = 0; v < found.b.rows; ++v) {
      for (size_t j = 0; j < test::kOutputs; ++j) EXPECT_EQ(found.b(v, j), made.b[2](v, j));
      for (size_t j = 0; j < test::kInputs; ++j) EXPECT_EQ(found.a(v, j), made.a[2](v, j));
    }
  }
}

TEST(KeptFactors, WhatDoesNotFitTheLayerIsRefused) {
  const test::TemporaryFolder tmp;
  test::write_factor_store(tmp / "s", 5, 1);
  const nlohmann::json good = nlohmann::json::parse(test::read_file(tmp / "s/manifest.json"));
  const auto refused = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json manifest = good;
    change(manifest);
    test::write_file(tmp / "s/manifest.json", manifest.dump());
    const Store store = Store::open(tmp / "s");
    return test::error_of([&] { KeptFactors(store, "dino"); });
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_NE(refused([](auto& m) {
              m["settings"]["gradient"]["outputs"] = 5;
            }).find("expected factors of a 5 x 10 layer, found 2 x 6 numbers"),
            std::string::npos);
  EXPECT_NE(refused([](auto& m) { m["blocks"][6]["rows"] = 3; }).find("restore manifest.json"),
            std::string::npos);
  EXPECT_NE(refused([](auto& m) { m["settings"].erase("gradient"); }).find("'settings.gradient'"),
            std::string::npos);
  EXPECT_NE(refused([](auto& m) {
              m["settings"] = {{"mine", 1}};
            }).find("settings do not say"),
            std::string::npos);
}

}  // namespace
}  // namespace fungi
