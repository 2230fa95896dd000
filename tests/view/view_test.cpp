// SPDX-License-Identifier: Apache-2.0
// Whole chains from picture to view against torchvision, Pillow and torch; the vectors of SPEC 7.1
// and 7.4.
#include "fungi/view/view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/view/crop.h"
#include "fungi/view/patches.h"
#include "tests/input/pattern.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

using nlohmann::json;

const json& golden() {
  static const json cases = testing::golden_json("input/views.json");
  return cases;
}

Filter filter_named(const std::string& name) {
  return name == "bilinear" ? Filter::bilinear : Filter::bicubic;
}

std::string checksum(std::span<const float> values) {
  std::vector<uint8_t> bytes(values.size_bytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return testing::checksum(bytes);
}

std::vector<float> all_views(const Image& image, const ViewPlan& plan, const Preprocess& preprocess,
                             uint32_t seed) {
  ImageViews views(plan, preprocess);
  const size_t floats = views.view_floats();
  std::vector<float> out(views.count() * floats);
  views.open(image, seed);
  for (size_t i = 0; i < views.count(); ++i)
    views.write(i, std::span(out).subspan(i * floats, floats));
  return out;
}

// Of 11 pixels a crop of 8 leaves 3: Hugging Face's processors begin at 3 / 2 = 1, torchvision at
// 2, the even one of 1 and 2. Of 13 it leaves 5, and both begin at 2.
TEST(EvaluationView, HalfOfAnOddMargin) {
  for (const auto& [width, floored, even] :
       {std::array<size_t, 3>{11, 1, 2}, {13, 2, 2}, {12, 2, 2}})
    for (const bool floor_crop : {true, false}) {
      const Image image = testing::pattern(width, width, 5);
      const Preprocess preprocess{
          .resize = Preprocess::Resize::none, .input_size = 8, .floor_crop = floor_crop};
      Preprocessor preprocessor(preprocess);
      const Image& view = preprocessor.pixels(image);
      const size_t first = floor_crop ? floored : even;
      for (size_t y = 0; y < 8; ++y)
        for (size_t x = 0; x < 3 * 8; ++x)
          ASSERT_EQ(view.rgb[y * 24 + x], image.rgb[((y + first) * width + first) * 3 + x])
              << width << ", " << floor_crop;
    }
}

TEST(EvaluationView, AsTorchvision) {
  ASSERT_EQ(golden()["evaluation"].size(), 12u);
  for (const json& c : golden()["evaluation"]) {
    SCOPED_TRACE(c.dump());
    const std::string resize = c["resize"];
    const Preprocess preprocess{.resize = resize == "squash"       ? Preprocess::Resize::squash
                                          : resize == "short_side" ? Preprocess::Resize::short_side
                                                                   : Preprocess::Resize::none,
                                .resize_size = c["to"],
                                .filter = filter_named(c["filter"]),
                                .input_size = c["crop"],
                                .mean = c["mean"],
                                .std = c["std"]};
    const Image image = testing::pattern(c["size"][0], c["size"][1], c["seed"]);
    EXPECT_EQ(testing::checksum(Preprocessor(preprocess).pixels(image).rgb), c["pixels"]);
    EXPECT_EQ(checksum(all_views(image, {}, preprocess, 0)), c["floats"]);
  }
}

TEST(RandomResizedCrop, PrintedBoxes) {
  const auto boxes = [](uint32_t seed, size_t width, size_t height, float low, float high,
                        int count) {
    TorchRandom random(seed);
    std::vector<std::array<size_t, 4>> out;
    for (int i = 0; i < count; ++i) {
      const Crop c = random_resized_crop(width, height, low, high, random);
      out.push_back({c.top, c.left, c.height, c.width});
    }
    return out;
  };
  using Boxes = std::vector<std::array<size_t, 4>>;
  EXPECT_EQ(boxes(0, 500, 375, 0.25f, 1.0f, 3),
            (Boxes{{53, 36, 316, 369}, {58, 10, 289, 312}, {31, 6, 321, 346}}));
  EXPECT_EQ(boxes(0, 500, 375, 0.05f, 0.25f, 3),
            (Boxes{{131, 0, 155, 181}, {112, 64, 139, 150}, {77, 14, 157, 169}}));
  EXPECT_EQ(boxes(7, 224, 224, 0.25f, 1.0f, 2), (Boxes{{13, 6, 197, 166}, {47, 67, 149, 143}}));
}

TEST(RandomResizedCrop, BoxesAsTorchvision) {
  ASSERT_EQ(golden()["boxes"].size(), 24u);
  for (const json& c : golden()["boxes"]) {
    SCOPED_TRACE(c.dump());
    ASSERT_EQ(c["boxes"].size(), 6u);
    TorchRandom random(c["seed"].get<uint32_t>());
    for (const json& box : c["boxes"]) {
      const Crop crop =
          random_resized_crop(c["size"][0], c["size"][1], c["area"][0], c["area"][1], random);
      EXPECT_EQ((json{crop.top, crop.left, crop.height, crop.width}), box);
    }
  }
}

// SPEC 3.6: where no crop fits, four thirds of the shorter side, rounded.
TEST(RandomResizedCrop, TheMiddleOfAThreadIsRounded) {
  TorchRandom random(1);
  const Crop wide = random_resized_crop(200, 5, 0.25f, 1.0f, random),
             slim = random_resized_crop(5, 200, 0.25f, 1.0f, random);
  EXPECT_EQ(wide.width, 7u);
  EXPECT_EQ(wide.height, 5u);
  EXPECT_EQ(wide.left, 96u);
  EXPECT_EQ(slim.height, 7u);
  EXPECT_EQ(slim.width, 5u);
  EXPECT_EQ(slim.top, 96u);
}

ViewPlan crop_plan(const json& c) {
  const auto area = [](const json& a) { return ImageCrops::Area{a[0], a[1]}; };
  return ImageCrops{.global_crops = c["counts"][0],
                    .local_crops = c["counts"][1],
                    .global_area = area(c["areas"][0]),
                    .local_area = area(c["areas"][1]),
                    .local_size = c.value("local_side", size_t{0}),
                    .bilinear = c["filter"] == "bilinear"};
}

TEST(CropViews, AsTorchvision) {
  ASSERT_EQ(golden()["crops"].size(), 4u);
  for (const json& c : golden()["crops"]) {
    SCOPED_TRACE(c["size"].dump());
    const Preprocess preprocess{.input_size = c["side"], .mean = c["mean"], .std = c["std"]};
    const Image image = testing::pattern(c["size"][0], c["size"][1], c["picture_seed"]);
    ImageViews views(crop_plan(c), preprocess);
    ASSERT_EQ(views.count(), c["views"].size());
    views.open(image, c["seed"]);
    for (size_t i = views.count(); i-- > 0;) {  // any order
      std::vector<float> out(views.view_floats(i));
      views.write(i, out);
      EXPECT_EQ(checksum(out), c["views"][i]["floats"]) << "view " << i;
    }
  }
}

TEST(PatchViews, GridFacts) {
  const PatchGrid usual = patch_grid(224, 4, 6);
  EXPECT_EQ(usual.side, 112u);
  EXPECT_EQ(usual.stride, 18u);
  EXPECT_EQ(usual.per_axis, 7u);
  EXPECT_EQ(usual.count(), 49u);
  EXPECT_EQ(patch_grid(224, 4, 4).count(), 25u);
  EXPECT_EQ(patch_grid(224, 4, 1).count(), 4u);
  EXPECT_THROW(patch_grid(224, 5, 6), Error);
  EXPECT_THROW(patch_grid(224, 9, 6), Error);
  EXPECT_THROW(patch_grid(224, 0, 6), Error);
  EXPECT_THROW(patch_grid(224, 4, 0), Error);
  EXPECT_THROW(patch_grid(224, 4, 113), Error);
}

TEST(PatchViews, AsTorch) {
  const std::vector<float> values = testing::golden_floats("input/views.f32");
  ASSERT_EQ(golden()["patches"].size(), 7u);
  for (const json& c : golden()["patches"]) {
    SCOPED_TRACE(c.dump());
    const Preprocess preprocess{.input_size = c["side"], .mean = c["mean"], .std = c["std"]};
    const ViewPlan plan = ImagePatches{.patch_count = c["patches"],
                                       .stride_scale = c["scale"],
                                       .patch_size = c.value("out", size_t{0})};
    ASSERT_EQ(image_view_count(plan, preprocess.input_size), c["views"]);
    const auto out =
        all_views(testing::pattern(c["size"][0], c["size"][1], c["seed"]), plan, preprocess, 0);
    const size_t step = c["step"], at = c["at"], count = c["count"];
    ASSERT_GT(count, 1000u);
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(out[i * step], values[at + i], 2e-6) << i;
  }
}

// A maker that has seen other images and other sizes gives the same bytes as a fresh one.
TEST(ImageViews, EarlierImagesLeaveNoTrace) {
  const Image one = testing::pattern(75, 50, 1), other = testing::pattern(40, 90, 2);
  const Preprocess preprocess{.resize_size = 36, .input_size = 32};
  for (const ViewPlan& plan :
       {ViewPlan(WholeImage{}), ViewPlan(ImageCrops{}), ViewPlan(ImagePatches{})}) {
    ImageViews views(plan, preprocess);
    std::vector<float> out(views.view_floats());
    views.open(other, 5);
    views.write(0, out);
    const std::vector<float> fresh = all_views(one, plan, preprocess, 11);
    views.open(one, 11);
    for (size_t i = 0; i < views.count(); ++i) {
      views.write(i, out);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), fresh.begin() + ptrdiff_t(i * out.size())))
          << i;
    }
  }
}

// In a batch every view has room for the largest; a smaller one says so.
TEST(ImageViews, SmallerViewsInABatch) {
  const Image image = testing::pattern(75, 50, 1);
  ImageViews views(ImageCrops{.local_crops = 2, .local_size = 16}, {.input_size = 32});
  views.open(image, 3);
  EXPECT_EQ(views.view_floats(1), 3u * 32 * 32);
  EXPECT_EQ(views.view_floats(2), 3u * 16 * 16);
  InputBuffer buffer;
  for (size_t i = 0; i < 4; ++i) views.write(i, buffer);
  const Inputs inputs = buffer.inputs();
  EXPECT_EQ(inputs.pixels.cols, 3u * 32 * 32);
  EXPECT_EQ(std::vector<uint32_t>(inputs.sides.begin(), inputs.sides.end()),
            (std::vector<uint32_t>{0, 0, 16, 16}));
  std::vector<float> alone(views.view_floats(3));
  views.write(3, alone);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), inputs.pixels.row(3)));
  EXPECT_ERROR("found view 2", views.write(2, std::span(alone).first(5)));
  EXPECT_ERROR("at most the 32 pixels",
               ImageViews(ImageCrops{.local_size = 48}, {.input_size = 32}));
  EXPECT_ERROR("ImagePatches::patch_size",
               ImageViews(ImagePatches{.patch_size = 33}, {.input_size = 32}));
}

TEST(ImageViews, SeedsBelongToTheSample) {
  EXPECT_EQ(view_seed(1, "dino", "a/b.jpg"),
            uint32_t(RandomStream(1, "dino", fnv1a64("a/b.jpg")).bits(0)));
  EXPECT_NE(view_seed(1, "dino", "a/b.jpg"), view_seed(1, "dino", "a/c.jpg"));
  EXPECT_NE(view_seed(1, "dino", "a/b.jpg"), view_seed(1, "ibot", "a/b.jpg"));
  EXPECT_NE(view_seed(1, "dino", "a/b.jpg"), view_seed(2, "dino", "a/b.jpg"));
}

// A thread of a picture would take gigabytes and minutes, most of all when squashed to a square.
TEST(ImageViews, RefusesThreads) {
  const auto refused = [](const ViewPlan& plan, const Preprocess& preprocess, size_t width,
                          size_t height) {
    const Image image{width, height, std::vector<uint8_t>(3 * width * height)};
    try {
      all_views(image, plan, preprocess, 1);
    } catch (const Error& error) {
      return std::string(error.what()).find(fmt::format("{}x{}", width, height)) !=
             std::string::npos;
    }
    return false;
  };
  using Resize = Preprocess::Resize;
  for (const ViewPlan& plan :
       {ViewPlan(WholeImage{}), ViewPlan(ImageCrops{}), ViewPlan(ImagePatches{})})
    for (const auto resize : {Resize::short_side, Resize::squash, Resize::none}) {
      const Preprocess small{.resize = resize, .resize_size = 36, .input_size = 32};
      EXPECT_FALSE(refused(plan, small, 4096, 1));
      EXPECT_FALSE(refused(plan, small, 2, 8192));
      EXPECT_TRUE(refused(plan, small, 4097, 1));
      EXPECT_TRUE(refused(plan, small, 2, 8193));
      EXPECT_TRUE(refused(plan, small, 1, 5'000'000));
    }
}

TEST(ImageViews, RefusesWhatCannotBeDone) {
  EXPECT_THROW(ImageViews(ImageCrops{.local_area = {0, 0.25f}}, {}), Error);
  EXPECT_THROW(ImageViews(ImageCrops{.global_crops = 0, .local_crops = 0}, {}), Error);
  EXPECT_THROW(ImageViews({}, {.input_size = 0}), Error);
  EXPECT_THROW(ImageViews({}, {.resize_size = 0}), Error);
  EXPECT_THROW(ImageViews({}, {.std = {1, 0, 1}}), Error);
  ImageViews views({}, {.input_size = 8});
  std::vector<float> out(views.view_floats());
  EXPECT_THROW(views.write(0, out), Error);  // nothing is open
}

}  // namespace
}  // namespace fungi
