// SPDX-License-Identifier: Apache-2.0
// DINO's augmentation against Pillow, with the numbers of torch's generator
// (tests/golden/make_ablation.py).
#include "fungi/view/augmentation.h"

#include <gtest/gtest.h>

#include <set>

#include "fungi/base/error.h"
#include "fungi/view/colours.h"
#include "fungi/view/view.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

using nlohmann::json;

const json& golden() {
  static const json cases = testing::golden_json("ablation/augmented.json");
  return cases;
}

TEST(Augmentation, BlurIsPillows) {
  ASSERT_EQ(golden()["blurs"].size(), 7u);
  for (const json& c : golden()["blurs"]) {
    Image image = testing::pattern(c["width"], c["height"], 500);
    blur(image, c["radius"].get<float>());
    EXPECT_EQ(testing::checksum(image.rgb), c["pixels"]) << c.dump();
  }
}

// Pixels come back out of the floats: mean 0 and deviation 1 / 255.
Image pixels_of(ImageViews& views, size_t view, size_t side) {
  std::vector<float> out(views.view_floats());
  views.write(view, out);
  Image image{side, side, std::vector<uint8_t>(3 * side * side)};
  for (size_t i = 0; i < side * side; ++i)
    for (size_t c = 0; c < 3; ++c)
      image.rgb[3 * i + c] = uint8_t(std::lround(out[c * side * side + i]));
  return image;
}

TEST(Augmentation, CropsAreThoseOfDino) {
  std::set<std::string> done;
  for (const json& c : golden()["crops"]) {
    SCOPED_TRACE(c.dump());
    const size_t side = c["side"];
    const float one = 1 / 255.0f;
    const Preprocess preprocess{.input_size = side, .mean = {0, 0, 0}, .std = {one, one, one}};
    ImageCrops plan{.global_crops = c["counts"][0],
                    .local_crops = c["counts"][1],
                    .augmentation = ImageAugmentation::dino};
    const Image picture = testing::pattern(c["size"][0], c["size"][1], c["picture"]);
    ImageViews views(plan, preprocess);
    views.open(picture, c["seed"].get<uint32_t>());
    for (size_t v = 0; v < views.count(); ++v) {
      EXPECT_EQ(testing::checksum(pixels_of(views, v, side).rgb), c["views"][v]) << v;
      for (const json& step : c["done"][v]) done.insert(step.get<std::string>());
    }
    // Fewer local crops leave the global ones as they are.
    const Image first = pixels_of(views, 0, side), last = pixels_of(views, plan.global_crops - 1, side);
    plan.local_crops = 0;
    ImageViews fewer(plan, preprocess);
    fewer.open(picture, c["seed"].get<uint32_t>());
    EXPECT_EQ(pixels_of(fewer, 0, side).rgb, first.rgb);
    EXPECT_EQ(pixels_of(fewer, plan.global_crops - 1, side).rgb, last.rgb);
  }
  EXPECT_EQ(done, (std::set<std::string>{"flip", "jitter", "grey", "blur", "solarise"}));
}

}  // namespace
}  // namespace fungi
