// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/predict.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fungi/base/error.h"

namespace fungi::segment {
namespace {

// Between which two cells each pixel of an axis lies, and how near to the second.
struct Axis {
  Axis(size_t from, size_t to) : first(to), second(to), near(to) {
    const float scale = float(from) / float(to);
    for (size_t i = 0; i < to; ++i) {
      const float place = std::max(0.0f, (float(i) + 0.5f) * scale - 0.5f);
      first[i] = std::min(size_t(place), from - 1);
      second[i] = std::min(first[i] + 1, from - 1);
      near[i] = place - float(first[i]);
    }
  }
  std::vector<size_t> first, second;
  std::vector<float> near;
};

// The row of the grid at a place between two of its rows, then between its columns.
void blend(const float* above, const float* below, float near, const Axis& columns, float* out) {
  for (size_t x = 0; x < columns.near.size(); ++x) {
    const size_t a = columns.first[x], b = columns.second[x];
    const float w = columns.near[x], v = 1.0f - w;
    out[x] = (1.0f - near) * (v * above[a] + w * above[b]) + near * (v * below[a] + w * below[b]);
  }
}

}  // namespace

void attention(std::span<const double> similarity, double temperature, std::span<double> weights) {
  FUNGI_ASSERT(!similarity.empty() && similarity.size() == weights.size());
  const double largest = *std::max_element(similarity.begin(), similarity.end());
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    sum += weights[i] = std::exp((similarity[i] - largest) / temperature);
  for (double& weight : weights) weight /= sum;
}

void upsample(View<const float> grid, View<float> out) {
  const Axis rows(grid.rows, out.rows), columns(grid.cols, out.cols);
  for (size_t y = 0; y < out.rows; ++y)
    blend(grid.row(rows.first[y]), grid.row(rows.second[y]), rows.near[y], columns, out.row(y));
}

Mask most_likely(View<const float> shares, size_t grid_h, size_t grid_w, size_t width,
                 size_t height) {
  FUNGI_ASSERT(shares.rows == grid_h * grid_w);
  // One plane per class that occurs at all; the others are nowhere larger than class 0.
  std::vector<size_t> classes;
  for (size_t c = 0; c < shares.cols; ++c)
    for (size_t p = 0; p < shares.rows; ++p)
      if (c == 0 || shares(p, c) > 0) {
        classes.push_back(c);
        break;
      }
  Matrix<float> planes(classes.size(), shares.rows);
  for (size_t i = 0; i < classes.size(); ++i)
    for (size_t p = 0; p < shares.rows; ++p) planes(i, p) = shares(p, classes[i]);
  const Axis rows(grid_h, height), columns(grid_w, width);
  Mask out{width, height, std::vector<uint8_t>(width * height)};
  std::vector<float> best(width), line(width);
  for (size_t y = 0; y < height; ++y) {
    uint8_t* to = out.values.data() + y * width;
    for (size_t i = 0; i < classes.size(); ++i) {
      const float* plane = planes.row(i);
      blend(plane + rows.first[y] * grid_w, plane + rows.second[y] * grid_w, rows.near[y], columns,
            i ? line.data() : best.data());
      for (size_t x = 0; i && x < width; ++x)
        if (line[x] > best[x]) best[x] = line[x], to[x] = uint8_t(classes[i]);
    }
  }
  return out;
}

}  // namespace fungi::segment
