// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/position.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fungi {
namespace {

double cubic(double x, double a) {  // Keys' kernel
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Four taps around a source coordinate, indices clamped at the edges (a = -0.75).
void add_plain_cubic(Matrix<double>& w, size_t to_index, double source) {
  const double base = std::floor(source), fraction = source - base;
  const long last = long(w.cols()) - 1;
  for (long tap = -1; tap <= 2; ++tap)
    w(to_index, size_t(std::clamp(long(base) + tap, 0l, last))) +=
        cubic(double(tap) - fraction, -0.75);
}

void add_antialias_cubic(Matrix<double>& w, size_t i, double scale) {
  const double stretch = std::max(scale, 1.0), centre = (double(i) + 0.5) * scale;
  const long low = std::max(long(centre - 2 * stretch + 0.5), 0l);
  const long high = std::min(long(centre + 2 * stretch + 0.5), long(w.cols()));
  double sum = 0;
  for (long x = low; x < high; ++x)
    sum += w(i, size_t(x)) = cubic((double(x) - centre + 0.5) / stretch, -0.5);
  for (long x = low; x < high; ++x) w(i, size_t(x)) /= sum;
}

void add_bilinear(Matrix<double>& w, size_t i, double scale) {
  const double source = std::max((double(i) + 0.5) * scale - 0.5, 0.0);
  const size_t low = std::min(size_t(source), w.cols() - 1), high = std::min(low + 1, w.cols() - 1);
  const double fraction = source - double(low);
  w(i, low) += 1 - fraction;
  w(i, high) += fraction;
}

// SSAST reads the stored grid's time axis (columns) only around its centre.
Matrix<float> cut_columns(View<const float> table, size_t rows, size_t cols, size_t keep) {
  const size_t start = cols / 2 - keep / 2;
  Matrix<float> cut(rows * keep, table.cols);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < keep; ++c)
      std::copy_n(table.row(r * cols + start + c), table.cols, cut.row(r * keep + c));
  return cut;
}

}  // namespace

Matrix<double> position_resize_weights(size_t from, size_t to, PositionResize how) {
  Matrix<double> w(to, from);
  const double scale = double(from) / double(to);
  for (size_t i = 0; i < to; ++i) {
    switch (how) {
      case PositionResize::antialias_bicubic:
        add_antialias_cubic(w, i, scale);
        break;
      case PositionResize::bicubic_offset:  // the scale factor is passed, not derived: SPEC 3.2-D
        add_plain_cubic(w, i, (double(i) + 0.5) * double(from) / (double(to) + 0.1) - 0.5);
        break;
      case PositionResize::bicubic:
        add_plain_cubic(w, i, (double(i) + 0.5) * scale - 0.5);
        break;
      case PositionResize::bicubic_corners:
        add_plain_cubic(w, i, to > 1 ? double(i) * double(from - 1) / double(to - 1) : 0.0);
        break;
      case PositionResize::cut:
        w(i, std::min(i, from - 1)) = 1;
        break;
      case PositionResize::bilinear:
      case PositionResize::cut_bilinear:
        add_bilinear(w, i, scale);
        break;
    }
  }
  return w;
}

Matrix<float> resize_positions(View<const float> table, size_t stored_h, size_t stored_w,
                               size_t grid_h, size_t grid_w, PositionResize how) {
  FUNGI_ASSERT(table.rows == stored_h * stored_w);
  Matrix<float> cut;
  if (how == PositionResize::cut_bilinear && grid_w < stored_w) {
    cut = cut_columns(table, stored_h, stored_w, grid_w);
    table = cut.view();
    stored_w = grid_w;
  }
  const Matrix<double> wy = position_resize_weights(stored_h, grid_h, how),
                       wx = position_resize_weights(stored_w, grid_w, how);
  const bool same = stored_h == grid_h && stored_w == grid_w;
  Matrix<float> out(grid_h * grid_w, table.cols);
  std::vector<double> sum(table.cols);
  for (size_t y = 0; y < grid_h; ++y) {
    for (size_t x = 0; x < grid_w; ++x) {
      if (same) {
        std::copy_n(table.row(y * grid_w + x), table.cols, out.row(y * grid_w + x));
        continue;
      }
      std::fill(sum.begin(), sum.end(), 0.0);
      for (size_t sy = 0; sy < stored_h; ++sy) {
        for (size_t sx = 0; sx < stored_w; ++sx) {
          const double weight = wy(y, sy) * wx(x, sx);
          if (weight == 0) continue;
          const float* row = table.row(sy * stored_w + sx);
          for (size_t j = 0; j < table.cols; ++j) sum[j] += weight * row[j];
        }
      }
      std::transform(sum.begin(), sum.end(), out.row(y * grid_w + x),
                     [](double s) { return float(s); });
    }
  }
  return out;
}

Matrix<float> rotary_angles(const Architecture& a) {
  const size_t bands = a.head_dim / 4, half = 2 * bands;
  const auto place = [&](size_t i, size_t patches) {
    if (a.rotary_centred)
      return 2 * std::numbers::pi * ((double(i) + 0.5) / double(patches) * 2 - 1);
    const double at = double(i) + double(a.rotary_offset);
    return a.rotary_grid ? at / double(patches) * double(a.rotary_grid) : at;
  };
  Matrix<float> angles(a.patches(), a.head_dim);
  for (size_t p = 0; p < a.patches(); ++p) {
    double first = place(p / a.grid_w(), a.grid_h()), second = place(p % a.grid_w(), a.grid_w());
    if (a.rotary_columns_first) std::swap(first, second);
    float* out = angles.row(p);
    for (size_t i = 0; i < half; ++i) {
      const double frequency = std::pow(double(a.rotary_theta), -double(i % bands) / double(bands));
      const float angle = float((i < bands ? first : second) * frequency);
      if (a.rotary_centred)
        out[i] = out[half + i] = angle;
      else
        out[2 * i] = out[2 * i + 1] = angle;
    }
  }
  return angles;
}

Matrix<float> cosines_and_sines(const Matrix<float>& angles) {
  const size_t width = angles.cols();
  Matrix<float> out(angles.rows(), 2 * width);
  for (size_t i = 0; i < angles.rows(); ++i)
    for (size_t j = 0; j < width; ++j)
      out(i, j) = std::cos(angles(i, j)), out(i, width + j) = std::sin(angles(i, j));
  return out;
}

Matrix<float> word_angles(size_t positions, size_t head_dim, float theta) {
  const size_t half = head_dim / 2;
  Matrix<float> angles(positions, head_dim);
  for (size_t j = 0; j < half; ++j) {  // in f32 there, as is the product
    const float frequency = 1.0f / std::pow(theta, float(2 * j) / float(head_dim));
    for (size_t i = 0; i < positions; ++i)
      angles(i, j) = angles(i, half + j) = float(i) * frequency;
  }
  return angles;
}

bool relative_buckets_fit(size_t buckets, size_t max_distance) {
  return buckets >= 4 && buckets <= 1u << 20 && max_distance <= 1u << 20 &&
         max_distance > buckets / 2 / 2;
}

size_t relative_bucket(long key_minus_query, size_t buckets, size_t max_distance) {
  const size_t half = buckets / 2, exact = half / 2, offset = key_minus_query > 0 ? half : 0;
  const size_t distance = size_t(std::abs(key_minus_query));
  if (distance < exact) return offset + distance;
  const float ratio = std::log(float(distance) / float(exact)) /
                      std::log(float(max_distance) / float(exact));  // as in f32 there
  return offset + std::min(exact + size_t(ratio * float(half - exact)), half - 1);
}

}  // namespace fungi
