// SPDX-License-Identifier: Apache-2.0
// Pictures and plans that a program made itself, and made wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fungi/view/view.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

constexpr size_t kHuge = std::numeric_limits<size_t>::max();

TEST(OwnImage, IsCheckedBeforeItIsRead) {
  Preprocessor preprocessor(Preprocess{.input_size = 8});
  std::vector<float> out(3 * 8 * 8), small(3);
  const Image good{20, 10, std::vector<uint8_t>(600)};
  for (const Image& bad :
       {Image{}, Image{64, 48, std::vector<uint8_t>(10)}, Image{20, 10, std::vector<uint8_t>(601)},
        Image{0, 10, {}}, Image{kHuge / 3 + 1, 3, {}}, Image{kHuge, kHuge, {}}}) {
    EXPECT_ERROR("bytes of pixels", check(bad));
    EXPECT_ERROR("bytes of pixels", preprocessor.apply(bad, out));
    EXPECT_ERROR("bytes of pixels", preprocessor.pixels(bad));
    for (const ViewPlan& plan :
         {ViewPlan(WholeImage{}), ViewPlan(ImageCrops{}), ViewPlan(ImagePatches{})}) {
      ImageViews views(plan, {.input_size = 32});
      EXPECT_ERROR("bytes of pixels", views.open(bad, 1));
    }
  }
  EXPECT_ERROR("expected room for 192 numbers, found 3", preprocessor.apply(good, small));
  preprocessor.apply(good, out);
}

TEST(OwnPreprocess, HasSizesAndStatisticsThatCanBe) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  check(Preprocess{.input_size = kLargestSide});
  EXPECT_ERROR("from 1 to 16384", check(Preprocess{.input_size = size_t{1} << 33}));
  EXPECT_ERROR("from 1 to 16384", check(Preprocess{.resize_size = kHuge}));
  check(Preprocess{.resize = Preprocess::Resize::none, .resize_size = kHuge});
  EXPECT_ERROR("finite means", check(Preprocess{.mean = {0, nan, 0}}));
  EXPECT_ERROR("finite means", check(Preprocess{.mean = {infinity, 0, 0}}));
  EXPECT_ERROR("positive deviations", check(Preprocess{.std = {1, 1, nan}}));
  EXPECT_ERROR("positive deviations", check(Preprocess{.std = {1, infinity, 1}}));
}

TEST(OwnPlan, HasViewsThatCanBeCounted) {
  ImageCrops plan{.global_crops = kHuge, .local_crops = 2};
  EXPECT_ERROR("1 to 65536 views", image_view_count(plan, 224));  // the sum wraps to 1
  plan.global_crops = 2, plan.local_crops = kHuge;
  EXPECT_ERROR("1 to 65536 views", image_view_count(plan, 224));
  plan.local_crops = kMostViews - 2;
  EXPECT_EQ(image_view_count(plan, 224), kMostViews);
  EXPECT_ERROR("1 to 65536 views", image_view_count(ImagePatches{.stride_scale = 512}, 1024));
}

TEST(OwnViews, AreThereAndFit) {
  ImageViews views({}, {.input_size = 8});
  const Image image{20, 10, std::vector<uint8_t>(600)};
  std::vector<float> out(views.view_floats()), small(3);
  EXPECT_ERROR("no image is open", views.write(0, out));
  views.open(image, 0);
  EXPECT_ERROR("a view from 0 to 0 and room for 192 numbers, found view 1 and 192",
               views.write(1, out));
  EXPECT_ERROR("room for 192 numbers", views.write(0, small));
  views.write(0, out);
}

template <class Picture>
constexpr bool kOpens = requires(ImageViews& views, Picture&& image) {
  views.open(std::forward<Picture>(image), 1);
};
static_assert(kOpens<Image&> && kOpens<const Image&> && !kOpens<Image>);

}  // namespace
}  // namespace fungi
