// SPDX-License-Identifier: Apache-2.0
// bf16 stays close to f32: on the demonstration's model and pictures, which are always there, and
// on the real DeiT-tiny, for noise and for photographs.
#include <gtest/gtest.h>

#include <filesystem>

#include "fungi/backbone/backbone.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/view_schedule.h"
#include "fungi/input/dataset.h"
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

// Of what f32 and bf16 make of each row of pixels.
std::vector<Cosines> compare(const fs::path& model, View<const float> pixels, Isa isa) {
  Pool pool(2);
  Matrix<float> embedding[2];
  LayerGradient gradient[2];
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const Backbone backbone = Backbone::open(model, {.isa = isa, .precision = precision}, pool);
    const size_t which = precision == Precision::bf16, d = backbone.architecture().embedding_width;
    embedding[which] = Matrix<float>(pixels.rows, d);
    Matrix<float> seed(pixels.rows, d);
    for (size_t i = 0; i < seed.rows(); ++i)
      for (size_t j = 0; j < d; ++j) seed(i, j) = float(j % 7) - 3.0f;
    Workspace workspace;
    backbone.forward(Inputs::images(pixels), workspace, embedding[which]);
    backbone.backward(seed, workspace, gradient[which]);
  }
  std::vector<Cosines> out;
  for (size_t i = 0; i < pixels.rows; ++i) {
    const size_t row = gradient[0].offsets[i];  // one per sample: a gradient of rank one,
    EXPECT_EQ(gradient[0].offsets[i + 1], row + 1);
    const auto cosine = [&](const Matrix<float>& x, const Matrix<float>& y, size_t at) {
      return golden::cosine(x.row(at), y.row(at), x.cols());
    };
    out.push_back(
        {cosine(embedding[0], embedding[1], i),
         // whose cosine is the product of its factors' cosines
         cosine(gradient[0].a, gradient[1].a, row) * cosine(gradient[0].b, gradient[1].b, row)});
  }
  return out;
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

INSTANTIATE_TEST_SUITE_P(, DemoModel, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });
INSTANTIATE_TEST_SUITE_P(, RealModel, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });

}  // namespace
}  // namespace fungi
