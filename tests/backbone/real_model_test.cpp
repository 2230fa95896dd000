// SPDX-License-Identifier: Apache-2.0
// bf16 and int8 stay close to f32: on the demonstration's model and pictures, which are always
// there, and on the real DeiT-tiny, for noise and for photographs; int8 on MiniLM and a random
// ViT-B, too.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/view_schedule.h"
#include "fungi/input/dataset.h"
#include "fungi/token/tokenizer.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

const fs::path kDemo = FUNGI_SOURCE_DIR "/demo";

fs::path deit_tiny() { return test::data_folder() / "weights/deit_tiny_patch16_224.safetensors"; }

// Some pictures of a folder, spread over it, as the model's evaluation transform shows them.
Matrix<float> pictures(const fs::path& folder, const Preprocess& transform, size_t count) {
  const auto dataset = open_dataset(folder);
  Preprocessor preprocessor(transform);
  Matrix<float> pixels(count, 3 * transform.input_size * transform.input_size);
  for (size_t i = 0; i < count; ++i)
    preprocessor.apply(dataset->image(i * dataset->size() / count), {pixels.row(i), pixels.cols()});
  return pixels;
}

Preprocess transform_of(const fs::path& model) {
  return evaluation_transform(read_architecture(Checkpoint::open(model)), Preset::native);
}

struct Cosines {
  double embedding, gradient;
};

using Open = std::function<Backbone(const BackboneOptions&, Pool&)>;

// ⟨x, y⟩ of the gradients of one sample, from their factors.
double inner(const LayerGradient& x, const LayerGradient& y, size_t sample) {
  const auto dot = [](const Matrix<float>& u, size_t i, const Matrix<float>& v, size_t j) {
    return std::inner_product(u.row(i), u.row(i) + u.cols(), v.row(j), 0.0);
  };
  double total = 0;
  for (size_t i = x.offsets[sample]; i < x.offsets[sample + 1]; ++i)
    for (size_t j = y.offsets[sample]; j < y.offsets[sample + 1]; ++j)
      total += dot(x.a, i, y.a, j) * dot(x.b, i, y.b, j);
  return total;
}

// Of what f32 and another precision make of each view.
std::vector<Cosines> compare(const Open& open, const Inputs& inputs, Isa isa, Precision precision) {
  Pool pool(2);
  Matrix<float> embedding[2];
  LayerGradient gradient[2];
  const size_t count = inputs.count();
  for (const size_t which : {0, 1}) {
    const Backbone backbone =
        open({.isa = isa, .precision = which ? precision : Precision::f32}, pool);
    const size_t d = backbone.architecture().embedding_width;
    embedding[which] = Matrix<float>(count, d);
    Matrix<float> seed(count, d);
    for (size_t i = 0; i < seed.rows(); ++i)
      for (size_t j = 0; j < d; ++j) seed(i, j) = float(j % 7) - 3.0f;
    Workspace workspace;
    backbone.forward(inputs, workspace, embedding[which]);
    backbone.backward(seed, workspace, gradient[which]);
  }
  std::vector<Cosines> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(
        {golden::cosine(embedding[0].row(i), embedding[1].row(i), embedding[0].cols()),
         inner(gradient[0], gradient[1], i) /
             std::sqrt(inner(gradient[0], gradient[0], i) * inner(gradient[1], gradient[1], i))});
  return out;
}

std::vector<Cosines> compare(const fs::path& model, View<const float> pixels, Isa isa,
                             Precision precision = Precision::bf16) {
  return compare([&](const BackboneOptions& o, Pool& p) { return Backbone::open(model, o, p); },
                 Inputs::images(pixels), isa, precision);
}

void expect_close(const std::vector<Cosines>& all, double embedding, double gradient) {
  EXPECT_FALSE(all.empty());
  for (const Cosines& c : all) {
    EXPECT_GE(c.embedding, embedding);
    EXPECT_GE(c.gradient, gradient);
  }
}

class DemoModel : public testing::TestWithParam<Isa> {};

TEST_P(DemoModel, Bf16IsCloseToF32) {
  const fs::path model = kDemo / "model.safetensors";
  const Matrix<float> pixels = pictures(kDemo / "images/test", transform_of(model), 40);
  for (const Cosines& c : compare(model, pixels, GetParam())) {
    EXPECT_GE(c.embedding, 0.99999);  // 0.999999 measured
    EXPECT_GE(c.gradient, 0.9999);    // 0.99999
  }
}

TEST_P(DemoModel, Int8IsCloseToF32) {
  const fs::path model = kDemo / "model.safetensors";
  const Matrix<float> pixels = pictures(kDemo / "images/test", transform_of(model), 40);
  expect_close(compare(model, pixels, GetParam(), Precision::int8), 0.995, 0.98);
}

class RealModel : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!fs::exists(deit_tiny())) GTEST_SKIP() << test::missing_data(deit_tiny());
  }
};

TEST_P(RealModel, Bf16IsCloseToF32) {
  Matrix<float> pixels(4, 3 * 224 * 224);
  const RandomStream random(2, "pixels");
  for (size_t i = 0; i < 4 * pixels.cols(); ++i) pixels.data()[i] = float(random.normal(i));
  for (const Cosines& c : compare(deit_tiny(), pixels, GetParam())) {
    EXPECT_GE(c.embedding, 0.9995);
    EXPECT_GE(c.gradient, 0.999);
  }
}

// docs/numerics.md has the figures of a whole set.
TEST_P(RealModel, Bf16IsCloseToF32OnPhotographs) {
  const fs::path folder = test::data_folder() / "images/pets/test";
  if (!fs::exists(folder)) GTEST_SKIP() << test::missing_data(folder);
  const Preprocess transform = transform_of(deit_tiny());
  EXPECT_EQ(transform.resize_size, 256u);
  EXPECT_EQ(transform.filter, Filter::bicubic);
  const Matrix<float> pixels = pictures(folder, transform, 12);
  for (const Cosines& c : compare(deit_tiny(), pixels, GetParam())) {
    EXPECT_GE(c.embedding, 0.9998);  // 0.999 when pixels are rounded once
    EXPECT_GE(c.gradient, 0.9995);
  }
}

TEST_P(RealModel, Int8IsCloseToF32OnPhotographs) {
  const fs::path folder = test::data_folder() / "images/pets/test";
  if (!fs::exists(folder)) GTEST_SKIP() << test::missing_data(folder);
  const Matrix<float> pixels = pictures(folder, transform_of(deit_tiny()), 12);
  expect_close(compare(deit_tiny(), pixels, GetParam(), Precision::int8), 0.995, 0.98);
}

TEST(RealText, Int8IsCloseToF32) {
  const fs::path model = test::data_folder() / "weights/all-MiniLM-L6-v2";
  if (!fs::exists(model)) GTEST_SKIP() << test::missing_data(model);
  const auto tokenizer = Tokenizer::open(model);
  std::vector<std::vector<int32_t>> ids;
  for (const char* text :
       {"My card has not arrived yet, and I ordered it two weeks ago.", "Rain",
        "Wall St. bears claw back into the black: short-sellers are seeing green again.",
        "Which transform did they use for the eigenvalues of so large a matrix?"})
    ids.push_back(tokenizer->encode(text, 128).ids);
  std::vector<Inputs::Text> texts;
  for (const auto& one : ids) texts.push_back({one, {}});
  const Open open = [&](const BackboneOptions& o, Pool& p) { return Backbone::open(model, o, p); };
  expect_close(compare(open, Inputs::text(texts), best_isa(), Precision::int8), 0.995, 0.98);
}

TEST(RandomModel, Int8IsCloseToF32InAViTB) {
  Matrix<float> pixels(1, 3 * 224 * 224);
  const RandomStream random(2, "pixels");
  for (size_t i = 0; i < pixels.cols(); ++i) pixels.data()[i] = float(random.normal(i));
  const Open open = [](const BackboneOptions& o, Pool& p) {
    return Backbone::assemble(named_architecture("vit_base_patch16_224"), RandomTensors(1), o, p);
  };
  expect_close(compare(open, Inputs::images(pixels), best_isa(), Precision::int8), 0.995, 0.98);
}

// Sums of bytes are whole numbers: what tables differ in are the roundings of all else.
TEST(DemoModelOnEveryTable, Int8GivesNearlyTheSame) {
  const fs::path model = kDemo / "model.safetensors";
  const Matrix<float> pixels = pictures(kDemo / "images/test", transform_of(model), 4);
  Pool pool(1);
  std::vector<Matrix<float>> results;
  for (const Isa isa : supported_isas()) {
    const Backbone backbone =
        Backbone::open(model, {.isa = isa, .precision = Precision::int8}, pool);
    Matrix<float>& found = results.emplace_back(4, backbone.architecture().embedding_width);
    Workspace workspace;
    backbone.forward(Inputs::images(pixels), workspace, found);
    const Matrix<float>& first = results.front();
    for (size_t i = 0; i < 4; ++i)
      EXPECT_GE(golden::cosine(first.row(i), found.row(i), found.cols()), 0.9995) << to_string(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(, DemoModel, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });
INSTANTIATE_TEST_SUITE_P(, RealModel, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });

}  // namespace
}  // namespace fungi
