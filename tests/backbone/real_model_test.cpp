// SPDX-License-Identifier: Apache-2.0
// bf16 stays close to f32 on the real DeiT-tiny: for noise, and for photographs.
#include <gtest/gtest.h>

#include <filesystem>

#include "fungi/backbone/backbone.h"
#include "fungi/base/random.h"
#include "fungi/input/dataset.h"
#include "fungi/input/preprocess.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

const std::filesystem::path kData = FUNGI_SOURCE_DIR "/../shared/data";
const std::filesystem::path kModel = kData / "weights/deit_tiny_patch16_224.safetensors";
constexpr size_t kPixels = 3 * 224 * 224;

struct Cosines {
  double embedding, gradient;
};

// Of what f32 and bf16 make of each row of pixels.
std::vector<Cosines> compare(View<const float> pixels, Isa isa) {
  Pool pool(2);
  Matrix<float> embedding[2];
  LayerGradient gradient[2];
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const Backbone backbone = Backbone::open(kModel, {.isa = isa, .precision = precision}, pool);
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

class RealModel : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel))
      GTEST_SKIP() << "needs the real DeiT-tiny weights at " << kModel;
  }
};

TEST_P(RealModel, Bf16IsCloseToF32) {
  Matrix<float> pixels(4, kPixels);
  const RandomStream random(2, "pixels");
  for (size_t i = 0; i < 4 * kPixels; ++i) pixels.data()[i] = float(random.normal(i));
  for (const Cosines& c : compare(pixels, GetParam())) {
    EXPECT_GE(c.embedding, 0.9995);
    EXPECT_GE(c.gradient, 0.999);
  }
}

// docs/numerics.md has the figures of a whole set.
TEST_P(RealModel, Bf16IsCloseToF32OnPhotographs) {
  const std::filesystem::path folder = kData / "images/pets/test";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs the photographs at " << folder;
  const auto photographs = open_dataset(folder);
  constexpr size_t kCount = 12;
  Preprocessor preprocessor({.resize_size = 248});
  Matrix<float> pixels(kCount, kPixels);
  for (size_t i = 0; i < kCount; ++i)
    preprocessor.apply(photographs->load(i * photographs->size() / kCount).image,
                       {pixels.row(i), kPixels});
  for (const Cosines& c : compare(pixels, GetParam())) {
    EXPECT_GE(c.embedding, 0.9998);  // 0.999 when pixels are rounded once
    EXPECT_GE(c.gradient, 0.9995);
  }
}

INSTANTIATE_TEST_SUITE_P(, RealModel, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });

}  // namespace
}  // namespace fungi
