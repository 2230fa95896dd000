// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/patch_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/resize.h"

namespace fungi {
namespace {

constexpr size_t kColours = 3, kMostRows = 4096;
constexpr double kOutside = 0.02;  // the share of the rows that is darkest, and brightest

}  // namespace

PatchColours PatchColours::fit(View<const float> rows, Pool& pool) {
  std::vector<size_t> some(std::min(kMostRows, rows.rows));
  for (size_t i = 0; i < some.size(); ++i) some[i] = i * rows.rows / some.size();
  if (!Pca::applies(kColours, rows.rows, rows.cols))
    fail(fmt::format("expected more than three rows and columns, found {} and {}", rows.rows,
                     rows.cols),
         "colours of patches", "remember more patches");
  const Matrix<float> chosen = gather(rows, some);
  PatchColours out;
  out.pca_ = Pca::fit(chosen, kColours, pool);
  if (!(out.pca_.total_variance() > 0))
    fail("all rows are the same", "colours of patches", "remember other pictures");
  const Matrix<float> places = out.pca_.transform(chosen, pool);
  std::vector<float> column(places.rows());
  for (size_t c = 0; c < kColours; ++c) {
    for (size_t i = 0; i < column.size(); ++i) column[i] = places(i, c);
    std::sort(column.begin(), column.end());
    const auto end = size_t(kOutside * double(column.size()));
    out.low_[c] = column[end];
    out.high_[c] = column[column.size() - 1 - end];
  }
  return out;
}

Image PatchColours::picture(View<const float> rows, size_t grid_h, size_t grid_w,
                            Pool& pool) const {
  FUNGI_ASSERT(rows.rows == grid_h * grid_w);
  const Matrix<float> places = pca_.transform(rows, pool);
  Image image{grid_w, grid_h, std::vector<uint8_t>(rows.rows * kColours)};
  for (size_t i = 0; i < rows.rows; ++i)
    for (size_t c = 0; c < kColours; ++c) {
      const float range = high_[c] - low_[c];
      const float share = range > 0 ? (places(i, c) - low_[c]) / range : 0.5f;
      image.rgb[kColours * i + c] = uint8_t(std::lround(255 * std::clamp(share, 0.0f, 1.0f)));
    }
  return image;
}

Image PatchColours::picture(View<const float> rows, size_t grid_h, size_t grid_w, size_t width,
                            size_t height, Pool& pool) const {
  Image large;
  PillowResizer().resize(picture(rows, grid_h, grid_w, pool), width, height, Filter::bilinear,
                         large);
  return large;
}

}  // namespace fungi
