// SPDX-License-Identifier: Apache-2.0
// Pictures as a dense model sees them, against Pillow and torch (tests/golden/make_segment.py).
#include "fungi/segment/picture_views.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

golden::Array load(const std::string& name) {
  return golden::load(std::string(FUNGI_GOLDEN_DIR "/segment/") + name + ".npy");
}

Image picture() {
  const golden::Array a = load("picture");
  Image image{a.shape[1], a.shape[0], {}};
  for (const double v : a.values) image.rgb.push_back(uint8_t(v));
  return image;
}

Jitter drawn(size_t i) {
  const std::vector<float> all = load("jitter").floats();
  return {all[4 * i], all[4 * i + 1], all[4 * i + 2], all[4 * i + 3]};
}

constexpr std::array<float, 3> kPaperStd = {0.229f, 0.224f, 0.255f};

TEST(PictureViews, JitterIsThatOfPillow) {
  const golden::Array expected = load("jittered");
  const size_t bytes = expected.cols();
  for (size_t i = 0; i < expected.rows(); ++i) {
    Image image = picture();
    apply(drawn(i), image);
    ASSERT_EQ(image.rgb.size(), bytes);
    size_t wrong = 0;
    for (size_t k = 0; k < bytes; ++k)
      wrong += double(image.rgb[k]) != expected.values[i * bytes + k];
    EXPECT_EQ(wrong, 0u) << i;
  }
}

TEST(PictureViews, WholeAndTrainAreThoseOfTorch) {
  PictureViews whole(24, 32, kImageNetMean, kPaperStd);
  std::vector<float> pixels(whole.numbers());
  whole.whole(picture(), pixels);
  const std::vector<float> expected = load("whole_view").floats();
  ASSERT_EQ(expected.size(), pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) ASSERT_NEAR(pixels[i], expected[i], 1e-6) << i;

  PictureViews views(24, 64, kImageNetMean, kPaperStd);
  pixels.assign(views.numbers(), 0);
  const PictureViews::Train train{drawn(9), {.top = 3, .left = 7, .height = 35, .width = 48}};
  views.train(picture(), train, pixels);
  const std::vector<float> truth = load("train_view").floats();
  ASSERT_EQ(truth.size(), pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) ASSERT_NEAR(pixels[i], truth[i], 2e-6) << i;
}

TEST(PictureViews, DrawsCoverWhatTheySay) {
  size_t untouched = 0, shrunk = 0;
  float low = 2, high = 0;
  constexpr uint32_t kDraws = 2000;
  for (uint32_t seed = 0; seed < kDraws; ++seed) {
    const PictureViews::Train t = PictureViews::draw(500, 375, seed);
    const PictureViews::Train same = PictureViews::draw(500, 375, seed);
    EXPECT_EQ(t.jitter.hue, same.jitter.hue);
    EXPECT_EQ(t.crop.left, same.crop.left);
    untouched += t.jitter.contrast == 1;
    low = std::min(low, t.jitter.brightness), high = std::max(high, t.jitter.brightness);
    EXPECT_LE(std::abs(t.jitter.hue), 0.1f);
    ASSERT_LE(t.crop.top + t.crop.height, 375u);
    ASSERT_LE(t.crop.left + t.crop.width, 500u);
    EXPECT_GE(t.crop.width * t.crop.height, size_t(0.49 * 500 * 375));
    shrunk += t.crop.width < 500;
  }
  EXPECT_NEAR(double(untouched) / kDraws, 0.5, 0.05);
  EXPECT_GT(shrunk, kDraws / 2);
  EXPECT_LT(low, 0.91f);
  EXPECT_GT(high, 1.09f);
}

TEST(PictureViews, NearestPixels) {
  // SPEC 3.2 E; what is enlarged repeats, what shrinks leaves out.
  std::vector<size_t> up, down;
  for (size_t i = 0; i < 6; ++i) up.push_back(nearest(i, 4, 6));
  for (size_t i = 0; i < 3; ++i) down.push_back(nearest(i, 8, 3));
  EXPECT_EQ(up, (std::vector<size_t>{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(down, (std::vector<size_t>{0, 2, 5}));
}

TEST(PictureViews, RefusesWhatCannotBe) {
  EXPECT_ERROR("height", PictureViews(0, 5, kImageNetMean, kImageNetStd));
  PictureViews views(8, 8, kImageNetMean, kImageNetStd);
  std::vector<float> pixels(views.numbers());
  const Image image = picture();
  EXPECT_ERROR("room", views.whole(image, std::span(pixels).first(5)));
  EXPECT_ERROR("does not lie",
               views.train(image, {{}, {.top = 40, .left = 0, .height = 5, .width = 5}}, pixels));
  EXPECT_ERROR("does not lie",
               views.train(image, {{}, {.top = 0, .left = 1, .height = 5, .width = 60}}, pixels));
  EXPECT_ERROR("", views.whole(Image{}, pixels));
}

}  // namespace
}  // namespace fungi
