// SPDX-License-Identifier: Apache-2.0
// Dense features of every family of vision transformers, at its own size and at an oblong one: what
// PatchFeatures joins, joined here by hand from tokens, loss and backward.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/base/unit_rows.h"
#include "fungi/objective/patch_simclr.h"
#include "fungi/segment/patch_features.h"
#include "tests/support/golden_family.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

using golden::Family;

std::vector<std::string> families_of_pictures() {
  std::vector<std::string> names;
  for (const std::string& name : golden::backbones())
    if (Family(name).input.shape.size() == 4) names.push_back(name);
  return names;
}

Matrix<float> random_pixels(size_t rows, size_t cols) {
  Matrix<float> m(rows, cols);
  const RandomStream random(11, "pixels");
  for (size_t i = 0; i < rows * cols; ++i) m.data()[i] = float(random.uniform(i) * 4 - 2);
  return m;
}

class PatchFamilies : public testing::TestWithParam<std::string> {};

void check(const Family& family, size_t height, size_t width, size_t& patch) {
  Pool pool(2);
  BackboneOptions backbone{.precision = Precision::f32};
  backbone.stated_facts = family.stated_facts();
  backbone.stated_facts.erase("size");
  for (const char* name : {"dino", "mae"})  // tensor names of both are timm's
    if (family.folder.filename() == name) backbone.stated_facts["family"] = name;
  PatchFeatureOptions options{.height = height,
                              .width = width,
                              .objective = "patch_simclr:drop=0",
                              .projection = ProjectionKind::none};
  PatchFeatures features =
      PatchFeatures::open(family.checkpoint(), std::move(options), pool, backbone);
  patch = features.patch_h();
  const Architecture& a = features.backbone().architecture();
  ASSERT_EQ(features.grid_h() * features.patch_h(), height);
  ASSERT_EQ(features.grid_w() * features.patch_w(), width);
  const size_t n = features.patches(), d = a.width;
  const Matrix<float> pixels = random_pixels(3, features.pixel_count());
  PatchScratch scratch;
  Matrix<float> support(2 * n, d), rows(n, features.width());
  features.embed(pixels.view().slice(1, 2), scratch, support);
  features.set_support(support.copy(), pool);
  features.features(pixels.view().slice(0, 1), std::vector<std::string>{"a"}, scratch, rows);

  Workspace workspace;
  Matrix<float> embedding(1, a.embedding_width), none(1, a.embedding_width), tokens(a.tokens(), d),
      d_tokens(a.tokens(), d);
  features.backbone().forward(Inputs::images(pixels.view().slice(0, 1)), workspace, embedding,
                              tokens);
  const size_t classes = a.prefix_tokens - a.registers;
  std::vector<size_t> looked;  // class tokens, then patches
  for (size_t t = 0; t < a.tokens(); ++t)
    if (t < classes || t >= a.prefix_tokens) looked.push_back(t);
  const Matrix<float> x = gather(tokens, looked);
  std::vector<size_t> nearest;
  for (size_t i = 0; i < x.rows(); ++i) {
    std::vector<std::pair<double, size_t>> found;
    for (size_t k = 0; k < support.rows(); ++k) {
      double dot = 0;
      for (size_t j = 0; j < d; ++j) dot += double(x(i, j)) * support(k, j);
      found.emplace_back(-dot, k);
    }
    std::partial_sort(found.begin(), found.begin() + 2, found.end());
    nearest.push_back(found[0].second), nearest.push_back(found[1].second);
  }
  PatchSimclr loss({}, d, 42);
  Matrix<float> d_x(x.rows(), d);
  loss.loss_and_gradient(x, gather(support, nearest), d_x);
  for (size_t i = 0; i < looked.size(); ++i) std::copy_n(d_x.row(i), d, d_tokens.row(looked[i]));
  LayerGradient g;
  features.backbone().backward(none, workspace, g, d_tokens);
  const size_t length = features.width() - d, columns = g.a.cols() + (g.bias ? 1 : 0);
  ASSERT_EQ(length, g.b.cols() * columns);
  for (size_t p = 0; p < n; ++p) {
    const size_t t = a.prefix_tokens + p;
    std::vector<double> y, unit(tokens.row(t), tokens.row(t) + d);
    for (size_t i = 0; i < g.b.cols(); ++i)
      for (size_t j = 0; j < columns; ++j)
        y.push_back(double(g.b(t, i)) * (j < g.a.cols() ? g.a(t, j) : 1.0f));
    const auto normalise_and_halve = [](std::vector<double>& v) {
      double square = 0;
      for (const double c : v) square += c * c;
      EXPECT_GT(square, 0);
      for (double& c : v) c /= std::sqrt(2 * square);
    };
    normalise_and_halve(y), normalise_and_halve(unit);
    EXPECT_LT(golden::relative_error(rows.row(p), unit.data(), d), 1e-5) << p;
    EXPECT_LT(golden::relative_error(rows.row(p) + d, y.data(), length), 1e-4) << p;
  }
}

TEST_P(PatchFamilies, FeaturesAreTheirPiecesJoined) {
  const Family family(GetParam());
  const size_t height = family.input.shape[2], width = family.input.shape[3];
  size_t patch = 0;
  check(family, height, width, patch);
  check(family, height + patch, width + 2 * patch, patch);
}

INSTANTIATE_TEST_SUITE_P(, PatchFamilies, testing::ValuesIn(families_of_pictures()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fungi
