// SPDX-License-Identifier: Apache-2.0
// Labels of patches and their sampling, labels of neighbours, upsampling and counting, against
// vectors of the specification (SPEC 10.1: the experiment's own functions, executed).
#include "fungi/segment/patch_labels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/base/random.h"
#include "fungi/evaluate/segmentation.h"
#include "fungi/segment/predict.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

nlohmann::json units() {
  std::ifstream file(FUNGI_GOLDEN_DIR "/segment/units.json");
  return nlohmann::json::parse(file);
}

Mask spec_mask() {
  Mask mask{16, 16, {}};
  const nlohmann::json rows = units()["sampling"]["mask16x16"];
  for (const auto& row : rows)
    for (const auto& value : row) mask.values.push_back(value);
  return mask;
}

TEST(PatchLabels, SharesOfThePixelsOfAPatch) {
  Mask mask{4, 2, {0, 1, 255, 2, 1, 1, 2, 2}};
  const Matrix<float> labels = patch_labels(mask, 1, 2, 3, 255);
  EXPECT_EQ(labels(0, 0), 0.25f);
  EXPECT_EQ(labels(0, 1), 0.75f);
  EXPECT_EQ(labels(1, 0), 0.25f) << "what is ignored counts as class 0";
  EXPECT_EQ(labels(1, 2), 0.75f);
  EXPECT_ERROR("multiples of 3x1 patches", patch_labels(mask, 1, 3, 3, 255));
}

TEST(PatchLabels, SamplingAsTheReference) {
  const auto spec = units()["sampling"];
  const Matrix<float> labels = patch_labels(spec_mask(), 4, 4, spec["num_classes"], 255);
  EXPECT_EQ(patch_scores(labels), spec["patch_scores"].get<std::vector<float>>());
  TorchRandom random(42);
  std::vector<float> uniform(16);
  for (float& u : uniform) u = random.uniform();
  EXPECT_EQ(sample_patches(labels, uniform, spec["keep"]),
            spec["indices"].get<std::vector<uint32_t>>());
  EXPECT_EQ(sample_patches(labels, uniform, 16).back(), 15u) << "all of them, in order";
  EXPECT_EQ(sample_patches(labels, uniform, 17).size(), 16u);
}

TEST(PatchLabels, HowManyFillTheMemory) {
  EXPECT_EQ(patches_per_picture(102400, 10582, 1, 1024), 9u);
  EXPECT_EQ(patches_per_picture(1024000, 10582, 1, 1024), 96u);
  EXPECT_EQ(patches_per_picture(10240000, 10582, 1, 1024), 967u);
  EXPECT_EQ(patches_per_picture(102400, 40, 1, 1024), 1024u);
  EXPECT_EQ(patches_per_picture(10, 40, 1, 1024), 1u);
  EXPECT_EQ(patches_per_picture(102400, 100, 8, 1024), 128u);
}

TEST(Predict, AttentionAsTheReference) {
  const auto spec = units()["cross_attention"];
  const auto unit = [](std::vector<double> v) {
    double sum = 0;
    for (const double x : v) sum += x * x;
    for (double& x : v) x /= std::sqrt(sum);
    return v;
  };
  for (size_t q = 0; q < 2; ++q) {
    const auto query = unit(spec["q"][0][q]);
    std::vector<double> similarity, weights(4);
    for (const auto& key : spec["k"][0][q]) {
      const auto k = unit(key);
      similarity.push_back(query[0] * k[0] + query[1] * k[1] + query[2] * k[2]);
    }
    segment::attention(similarity, spec["beta"], weights);
    for (size_t c = 0; c < 4; ++c) {
      double share = 0;
      for (size_t i = 0; i < 4; ++i) share += weights[i] * spec["v"][0][q][i][c].get<double>();
      EXPECT_NEAR(share, spec["label_hat"][0][q][c].get<double>(), 1e-6) << q << " " << c;
    }
  }
}

TEST(Predict, UpsamplingAsTorch) {
  const auto spec = units()["bilinear_2x2_to_8x8"];
  Matrix<float> grid(2, 2), out(8, 8);
  for (size_t i = 0; i < 4; ++i) grid.data()[i] = float(i);
  segment::upsample(grid, out);
  for (size_t y = 0; y < 8; ++y)
    for (size_t x = 0; x < 8; ++x) EXPECT_EQ(out(y, x), spec[y][x].get<float>());
}

TEST(Predict, TheLargestShareWinsAndTheFirstOfEqualOnes) {
  Matrix<float> shares(4, 3);  // a grid of 2 x 2
  shares(0, 2) = 1;
  shares(1, 1) = 1;
  shares(2, 1) = shares(2, 2) = 0.5f;
  const Mask mask = segment::most_likely(shares, 2, 2, 2, 2);
  EXPECT_EQ(mask.values, (std::vector<uint8_t>{2, 1, 1, 0}));
  const Mask wide = segment::most_likely(shares, 2, 2, 8, 2);
  EXPECT_EQ(wide.values, (std::vector<uint8_t>{2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}));
}

TEST(Segmentation, CountsAndMeansAsTheReference) {
  const auto spec = units()["miou"];
  const auto as_mask = [](const nlohmann::json& values) {
    return Mask{values.size(), 1, values.get<std::vector<uint8_t>>()};
  };
  Confusion confusion(spec["classes"]);
  confusion.add(as_mask(spec["gt"]), as_mask(spec["pred"]), 255);
  const SegmentationScore s = score(confusion);
  EXPECT_NEAR(s.miou, spec["plain"].get<double>(), 1e-9);
  EXPECT_NEAR(s.hungarian, spec["hungarian"].get<double>(), 1e-9);
  EXPECT_NEAR(s.present, 6 * s.miou / 5, 1e-12) << "class 4 is not there";
  EXPECT_NEAR(s.pixel_accuracy, 6.0 / 12, 1e-12);
  // What the reference renames each prediction to.
  const auto predicted = spec["pred"].get<std::vector<uint8_t>>();
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto truth = std::find(s.renamed.begin(), s.renamed.end(), predicted[i]);
    EXPECT_EQ(size_t(truth - s.renamed.begin()), spec["hungarian_reordered"][i].get<size_t>());
  }
}

TEST(Segmentation, IgnoredPixelsAndUnmeasuredClassesAreLeftOut) {
  const Mask truth{4, 1, {0, 1, 255, 1}}, predicted{4, 1, {1, 1, 0, 0}};
  Confusion all(2), some(2);
  all.add(truth, predicted, 255);
  EXPECT_EQ(all(0, 1) + all(1, 1) + all(1, 0), 3u);
  some.add(truth, predicted, 255, 0);
  EXPECT_EQ(some(0, 1), 0u);
  EXPECT_EQ(score(some, 0).miou, 0.5) << "class 1 alone: one of two";
  EXPECT_EQ(score(some, 0).pixel_accuracy, 0.5);
  EXPECT_ERROR("expected classes of 0 to 1", all.add(Mask{1, 1, {0}}, Mask{1, 1, {2}}, 255));
  EXPECT_ERROR("expected a prediction of 4x1", all.add(truth, Mask{1, 1, {0}}, 255));
  const SegmentationScore none = score(Confusion(3));
  EXPECT_EQ(none.miou + none.present + none.hungarian + none.pixel_accuracy, 0);
}

}  // namespace
}  // namespace fungi
