// SPDX-License-Identifier: Apache-2.0
// Pictures of several sides in one batch: against timm at each side, with the gradient of a loss
// that joins them (tests/golden/make_sides.py); alone the same bytes as among others; and what is
// refused.
#include "fungi/backbone/sides.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "tests/support/errors.h"
#include "tests/support/golden_family.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

constexpr size_t kSide = 16;  // of the models in the golden folder

// Views of which some are smaller than the model's input.
struct Mixed {
  Matrix<float> pixels;
  std::vector<uint32_t> sides;  // 0: the model's own

  Inputs inputs(size_t first, size_t count) const {
    Inputs in = Inputs::images(pixels.view().slice(first, count));
    in.sides = std::span(sides).subspan(first, count);
    return in;
  }
  Inputs inputs() const { return inputs(0, sides.size()); }
};

Mixed golden_views(const std::filesystem::path& folder) {
  const nlohmann::json facts = nlohmann::json::parse(std::ifstream(folder / "facts.json"));
  const std::vector<float> all = golden::load((folder / "input.npy").string()).floats();
  const auto sides = facts.at("sides").get<std::vector<uint32_t>>();
  Mixed mixed{Matrix<float>(sides.size(), 3 * kSide * kSide), {}};
  const float* from = all.data();
  for (size_t i = 0; i < sides.size(); ++i) {
    const size_t numbers = 3 * sides[i] * sides[i];
    std::copy_n(from, numbers, mixed.pixels.row(i));
    from += numbers;
    mixed.sides.push_back(sides[i] == kSide ? 0 : sides[i]);
  }
  EXPECT_EQ(from, all.data() + all.size());
  return mixed;
}

class Sides : public testing::TestWithParam<std::tuple<std::string, Isa>> {};

TEST_P(Sides, LossOverSeveralSidesAsInTimm) {
  const auto& [name, isa] = GetParam();
  const golden::Family family(name);
  const std::filesystem::path folder = std::filesystem::path(FUNGI_GOLDEN_DIR) / "sides" / name;
  const auto array = [&](const std::string& file) {
    return golden::load((folder / (file + ".npy")).string());
  };
  const Mixed views = golden_views(folder);
  const size_t n = views.sides.size();
  const golden::Array embedding = array("embedding");
  const std::vector<float> seed = array("seed").floats();
  Pool pool(1);
  size_t layers = 0;
  for (const char* layer : {"blocks.0.attn.qkv", "blocks.1.attn.proj", "blocks.2.attn.proj"}) {
    if (!std::filesystem::exists(folder / fmt::format("grad_{}.npy", layer))) continue;
    ++layers;
    BackboneOptions options{.isa = isa, .precision = Precision::f32, .layer = layer};
    options.stated_facts = family.stated_facts();
    options.stated_facts["size"] = std::to_string(kSide);
    if (name == "dino") options.stated_facts["family"] = "dino";  // timm's names, DINO's positions
    const Backbone backbone = Backbone::open(family.checkpoint(), options, pool);
    const size_t d = backbone.architecture().embedding_width;
    Workspace workspace;
    Matrix<float> out(n, d);
    backbone.forward(views.inputs(), workspace, out);
    for (size_t i = 0; i < n; ++i)
      EXPECT_LT(golden::relative_error(out.row(i), embedding.values.data() + i * d, d), 2e-5)
          << "side " << views.sides[i];

    const golden::Array truth = array(fmt::format("grad_{}", layer));
    const auto expect_sum = [&](const LayerGradient& g) {
      const size_t rows = g.b.cols(), cols = truth.shape[1];
      std::vector<double> full(rows * cols, 0.0);
      for (size_t r = 0; r < g.offsets.back(); ++r)
        for (size_t y = 0; y < rows; ++y)
          for (size_t x = 0; x < cols; ++x)
            full[y * cols + x] += double(g.b(r, y)) * (x < g.a.cols() ? g.a(r, x) : 1.0f);
      if (name == "timm_eva02_clip" && std::string(layer).ends_with("qkv"))
        for (size_t y = rows / 3; y < 2 * rows / 3; ++y)
          full[y * cols + cols - 1] = 0;  // the file has no such parameter
      EXPECT_LT(golden::relative_error(full.data(), truth.values.data(), full.size()), 1e-4)
          << layer;
    };
    const View<const float> d_embeddings{seed.data(), n, d};
    LayerGradient g;
    backbone.backward(d_embeddings, workspace, g);
    expect_sum(g);
    if (!backbone.can_record()) continue;
    Recording recording(backbone, n);
    for (const auto& [first, count] : {std::pair<size_t, size_t>(0, 2), {2, 3}}) {
      backbone.forward(views.inputs(first, count), workspace, out.view().slice(first, count));
      backbone.record(workspace, recording);
    }
    backbone.backward(d_embeddings, recording, 0, workspace, std::span(&g, 1));
    expect_sum(g);
  }
  EXPECT_EQ(layers, 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Families, Sides,
    testing::Combine(testing::Values("dino", "timm_vit", "timm_vit_avg", "timm_eva02_clip",
                                     "timm_dinov3"),
                     testing::ValuesIn(supported_isas())),
    [](const auto& p) {
      return std::get<0>(p.param) + "_" + to_string(std::get<1>(p.param));
    });

Mixed random_views(const Architecture& a, std::vector<uint32_t> sides) {
  Mixed mixed{Matrix<float>(sides.size(), 3 * a.input_h * a.input_w), std::move(sides)};
  const RandomStream random(1, "pixels");
  for (size_t i = 0; i < mixed.pixels.rows() * mixed.pixels.cols(); ++i)
    mixed.pixels.data()[i] = float(random.normal(i));
  return mixed;
}

class SidesAlone : public testing::TestWithParam<std::tuple<Precision, std::string>> {};

TEST_P(SidesAlone, SameBytesInAnyBatch) {
  const auto& [precision, layer] = GetParam();
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 2, a.input_h = a.input_w = 96, a.stored_grid_h = a.stored_grid_w = 6;
  Pool pool(1);
  const Backbone backbone = Backbone::assemble(a, RandomTensors(3),
                                               {.precision = precision, .layer = layer}, pool);
  const Mixed views = random_views(a, {0, 48, 48, 0, 96, 16, 80, 48});
  const size_t n = views.sides.size(), d = a.embedding_width;
  Matrix<float> seeds(n, d), together(n, d), alone(1, d);
  for (size_t i = 0; i < n * d; ++i) seeds.data()[i] = float(i % 7) - 3.0f;
  Workspace workspace, other;
  LayerGradient all, one;
  backbone.forward(views.inputs(), workspace, together);
  backbone.backward(seeds, workspace, all);
  for (size_t i = 0; i < n; ++i) {
    backbone.forward(views.inputs(i, 1), other, alone);
    EXPECT_TRUE(std::equal(alone.row(0), alone.row(0) + d, together.row(i))) << i;
    backbone.backward(seeds.view().slice(i, 1), other, one);
    const size_t first = all.offsets[i], rows = all.offsets[i + 1] - first;
    ASSERT_EQ(one.offsets[1], rows);
    for (size_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(std::equal(one.a.row(r), one.a.row(r) + one.a.cols(), all.a.row(first + r)));
      EXPECT_TRUE(std::equal(one.b.row(r), one.b.row(r) + one.b.cols(), all.b.row(first + r)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SidesAlone,
                         testing::Combine(testing::Values(Precision::f32, Precision::bf16,
                                                          Precision::int8),
                                          testing::Values("blocks.1.attn.proj",
                                                          "blocks.0.mlp.fc1")),
                         [](const auto& p) {
                           return std::string(to_string(std::get<0>(p.param))) +
                                  (std::get<1>(p.param).ends_with("proj") ? "_proj" : "_fc1");
                         });

// A side that is written out and 0 are the same thing.
TEST(SidesOf, TheModelsOwnSideIsZero) {
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 1;
  Pool pool(1);
  const Backbone backbone = Backbone::assemble(a, RandomTensors(3), {.layer = "none"}, pool);
  Mixed views = random_views(a, {0, 224});
  std::copy_n(views.pixels.row(0), views.pixels.cols(), views.pixels.row(1));
  Matrix<float> out(2, a.embedding_width);
  Workspace workspace;
  backbone.forward(views.inputs(), workspace, out);
  EXPECT_TRUE(std::equal(out.row(0), out.row(0) + out.cols(), out.row(1)));
}

TEST(SidesOf, WhatTheModelCannotLookAt) {
  const Architecture a = named_architecture("vit_tiny_patch16_224");
  for (const size_t side : {size_t{0}, size_t{16}, size_t{96}, size_t{224}})
    EXPECT_NO_THROW(check_side(a, side, "x"));
  EXPECT_ERROR("multiple of the model's patch of 16 pixels, found 100", check_side(a, 100, "x"));
  EXPECT_ERROR("at most the 224 pixels", check_side(a, 240, "x"));
  EXPECT_ERROR("found 8", check_side(a, 8, "x"));
  Architecture sound = a;
  sound.input = InputKind::filter_bank;
  EXPECT_ERROR("of one size", check_side(sound, 96, "x"));
  EXPECT_EQ(patches_at(a, 96), 36u);
  EXPECT_EQ(patches_at(a, 0), 196u);
  EXPECT_EQ(at_side(a, 112).patches(), 49u);

  Architecture small = a;
  small.depth = 1;
  Pool pool(1);
  const Backbone backbone = Backbone::assemble(small, RandomTensors(3), {.layer = "none"}, pool);
  Matrix<float> out(1, a.embedding_width);
  Workspace workspace;
  Mixed views = random_views(a, {100});
  EXPECT_ERROR("multiple", backbone.forward(views.inputs(), workspace, out));
  views.sides = {96, 96};
  Inputs wrong = Inputs::images(views.pixels);
  wrong.sides = views.sides;
  EXPECT_ERROR("the sides of 2", backbone.forward(wrong, workspace, out));
}

}  // namespace
}  // namespace fungi
