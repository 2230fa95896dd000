// SPDX-License-Identifier: Apache-2.0
// Resizing against Pillow (byte for byte) and torch (float), and the printed vectors of SPEC 7.4.
#include "fungi/input/resize.h"

#include <gtest/gtest.h>

#include "fungi/base/error.h"
#include "fungi/base/matrix.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

Filter filter_named(const std::string& name) {
  return name == "bilinear" ? Filter::bilinear : Filter::bicubic;
}

TEST(PillowResize, TwoHundredSizePairs) {
  const auto cases = testing::golden_json("input/resize.json");
  ASSERT_EQ(cases.size(), 200u);
  PillowResizer resizer;
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.dump());
    const Image in = testing::pattern(expected["from"][0], expected["from"][1], expected["seed"]);
    for (const char* name : {"bilinear", "bicubic"}) {
      Image out;
      resizer.resize(in, expected["to"][0], expected["to"][1], filter_named(name), out);
      if (expected.contains(std::string(name) + "_rgb")) {
        EXPECT_EQ(out.rgb,
                  testing::from_hex(expected[std::string(name) + "_rgb"].get<std::string>()));
      }
      EXPECT_EQ(testing::checksum(out.rgb), expected[name]) << name;
    }
  }
}

TEST(PillowResize, PrintedRows) {
  const std::vector<uint8_t> row = {10, 200, 30, 40, 250, 0, 255, 128};
  const auto resized = [&](size_t to, Filter filter, bool column) {
    Image in{column ? 1 : row.size(), column ? row.size() : 1, {}}, out;
    for (uint8_t v : row) in.rgb.insert(in.rgb.end(), {v, v, uint8_t(255 - v)});
    PillowResizer().resize(in, column ? 1 : to, column ? to : 1, filter, out);
    std::vector<int> red;
    for (size_t i = 0; i < to; ++i) {
      EXPECT_EQ(out.rgb[3 * i], out.rgb[3 * i + 1]);
      red.push_back(out.rgb[3 * i]);
    }
    return red;
  };
  for (const bool column : {false, true}) {
    EXPECT_EQ(resized(3, Filter::bicubic, column), (std::vector<int>{87, 106, 157}));
    EXPECT_EQ(resized(13, Filter::bicubic, column),
              (std::vector<int>{0, 90, 200, 90, 14, 29, 161, 239, 43, 66, 252, 188, 119}));
    EXPECT_EQ(resized(5, Filter::bilinear, column), (std::vector<int>{88, 76, 134, 112, 180}));
    EXPECT_EQ(resized(11, Filter::bilinear, column),
              (std::vector<int>{10, 122, 146, 30, 38, 145, 193, 11, 174, 203, 128}));
  }
}

// Whoever resizes is safe, not only the views: quickly, whatever the length.
TEST(PillowResize, RefusesThreads) {
  const Image longest{1, 4096, std::vector<uint8_t>(3 * 4096)},
      thread{20'000'000, 1, std::vector<uint8_t>(60'000'000)};
  PillowResizer resizer;
  Image out;
  resizer.resize(longest, 8, 8, Filter::bicubic, out);
  EXPECT_EQ(out.rgb.size(), 192u);
  EXPECT_THROW(resizer.resize(thread, 8, 8, Filter::bicubic, out), Error);
  try {
    check_proportion(4097, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("found 4097x1"), std::string::npos) << error.message();
  }
}

TEST(PillowResize, ACropSeesNothingOutside) {
  const Image whole = testing::pattern(60, 50, 3);
  Image copy{31, 22, {}}, from_view, from_copy;
  for (size_t y = 0; y < copy.height; ++y) {
    const uint8_t* row = whole.rgb.data() + 3 * ((y + 9) * whole.width + 29);
    copy.rgb.insert(copy.rgb.end(), row, row + 3 * copy.width);
  }
  PillowResizer resizer;
  resizer.resize(Pixels(whole).crop(29, 9, 31, 22), 40, 41, Filter::bicubic, from_view);
  resizer.resize(copy, 40, 41, Filter::bicubic, from_copy);
  EXPECT_EQ(from_view.rgb, from_copy.rgb);
  resizer.resize(Pixels(whole).crop(29, 9, 31, 22), 31, 22, Filter::bicubic, from_view);
  EXPECT_EQ(from_view.rgb, copy.rgb);
}

// One pass down, the loop of every float resize, and the whole of one: the pass on the plane
// turned, then on the plane, as the patches do it (fungi/view/patches.cpp).
Matrix<float> pass_down(const Matrix<float>& in, size_t to, Filter filter) {
  const AxisWeights<float> w = float_weights(in.rows(), to, filter);
  Matrix<float> out(to, in.cols());
  for (size_t y = 0; y < to; ++y)
    blend_rows(in.row(w.first[y]), in.stride(), w.weight.data() + y * w.taps, w.taps, in.cols(),
               out.row(y));
  return out;
}

Matrix<float> turned(const Matrix<float>& in) {
  Matrix<float> out(in.cols(), in.rows());
  for (size_t y = 0; y < in.rows(); ++y)
    for (size_t x = 0; x < in.cols(); ++x) out(x, y) = in(y, x);
  return out;
}

Matrix<float> resized(const Matrix<float>& in, size_t rows, size_t cols, Filter filter) {
  return pass_down(turned(pass_down(turned(in), cols, filter)), rows, filter);
}

TEST(FloatResize, AgainstTorch) {
  const auto cases = testing::golden_json("input/float_resize.json");
  const auto values = testing::golden_floats("input/float_resize.f32");
  ASSERT_EQ(cases.size(), 12u);
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.dump());
    const Image picture =
        testing::pattern(expected["from"][0], expected["from"][1], expected["seed"]);
    Matrix<float> in(picture.height, picture.width);
    for (size_t i = 0; i < picture.width * picture.height; ++i)
      in.data()[i] = float(picture.rgb[3 * i]) / 255.0f;
    const Matrix<float> out =
        resized(in, expected["to"][1], expected["to"][0], filter_named(expected["filter"]));
    const size_t step = expected["step"], at = expected["at"], count = expected["count"];
    ASSERT_GT(count, 0u);
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(out.data()[i * step], values[at + i], 1e-6) << i;
  }
}

TEST(FloatResize, PrintedWeightsAndOvershoot) {
  const AxisWeights<float> w = float_weights(4, 8, Filter::bicubic);
  ASSERT_EQ(w.taps, 4u);
  const auto expect_row = [&](size_t i, std::vector<float> expected) {
    EXPECT_EQ(w.first[i], 0u);
    for (size_t j = 0; j < 4; ++j)
      EXPECT_NEAR(w.weight[4 * i + j], expected[j], 1e-8) << i << " " << j;
  };
  expect_row(0, {1.08823529f, -0.08823529f, 0, 0});
  expect_row(1, {0.81021898f, 0.21167883f, -0.02189781f, 0});
  expect_row(3, {-0.0703125f, 0.8671875f, 0.2265625f, -0.0234375f});

  Matrix<float> in(1, 4);
  const float values[] = {0, 1, 0, 0.5f};
  std::copy(values, values + 4, in.data());
  const Matrix<float> out = resized(in, 1, 8, Filter::bicubic);
  const float expected[] = {-0.08823529f, 0.21167883f, 0.84732824f, 0.85546875f,
                            0.19140625f,  0.04198473f, 0.38321168f, 0.54411765f};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(out(0, i), expected[i], 1e-7) << i;
}

// The loops cut rows into blocks; the cut must not show.
TEST(FloatResize, BlendRowsIsTheSumInOrder) {
  for (const size_t count : {1u, 7u, 31u, 32u, 33u, 100u}) {
    const size_t stride = count + 3, taps = 5;
    std::vector<float> in(stride * taps), out(count), weight = {0.3f, -0.7f, 1.1f, 0.01f, 0.29f};
    TorchRandom random(uint32_t(count + 1));
    for (float& v : in) v = random.uniform(-2, 2);
    blend_rows(in.data(), stride, weight.data(), taps, count, out.data());
    for (size_t i = 0; i < count; ++i) {
      volatile float sum = 0;
      for (size_t j = 0; j < taps; ++j) {
        volatile float product = in[j * stride + i] * weight[j];
        sum = sum + product;
      }
      EXPECT_EQ(out[i], sum) << count << " " << i;
    }
  }
}

}  // namespace
}  // namespace fungi
