// SPDX-License-Identifier: Apache-2.0
// Weights of an axis, Pillow's two integer passes and the loop of torch's float passes (SPEC 3.2 A
// and B).
#include "fungi/input/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fungi/base/error.h"
#include "fungi/input/clones.h"

namespace fungi {
namespace {

constexpr int kFixedBits = 22;  // Pillow: 32 bits minus 8 for the pixel minus 2 for overshoot

template <class T>
T filter_value(Filter filter, T x) {
  x = std::abs(x);
  if (filter == Filter::bilinear) return x < 1 ? 1 - x : 0;
  constexpr T a = T(-0.5);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// The antialias rule in the arithmetic of T; taps outside the input are dropped, the rest
// renormalised.
template <class T>
AxisWeights<T> axis_weights(size_t from, size_t to, Filter filter) {
  FUNGI_ASSERT(from > 0 && to > 0);
  const T scale = T(from) / T(to), stretch = std::max(scale, T(1));
  const T support = (filter == Filter::bilinear ? T(1) : T(2)) * stretch;
  AxisWeights<T> axis{from, to, 0, std::vector<uint32_t>(to), {}};
  const size_t most = std::min(from, size_t(std::ceil(support)) * 2 + 1);
  std::vector<uint32_t> count(to);
  std::vector<T> window(to * most);
  for (size_t i = 0; i < to; ++i) {
    const T centre = (T(i) + T(0.5)) * scale;
    // The halves are added in double in both references, whatever T is.
    const size_t low = size_t(std::max(0.0, double(centre - support) + 0.5));
    const size_t high = std::min(size_t(double(centre + support) + 0.5), from);
    axis.first[i] = uint32_t(low);
    count[i] = uint32_t(high - low);
    axis.taps = std::max(axis.taps, high - low);
    T* w = window.data() + i * most;
    T sum = 0;
    for (size_t x = low; x < high; ++x)
      sum += w[x - low] =
          filter_value(filter, T((double(T(x) - centre) + 0.5) * double(T(1) / stretch)));
    for (size_t j = 0; j < high - low; ++j) w[j] /= sum;
  }
  axis.weight.assign(to * axis.taps, T(0));
  for (size_t i = 0; i < to; ++i) {  // a short window at the far edge starts earlier, with zeros
    const size_t start = std::min<size_t>(axis.first[i], from - axis.taps);
    std::copy_n(window.data() + i * most, count[i],
                axis.weight.data() + i * axis.taps + (axis.first[i] - start));
    axis.first[i] = uint32_t(start);
  }
  return axis;
}

// Eight lanes: one AVX2 register or two of SSE2; sixteen: one of AVX-512. They never cross a call.
using Lanes = int32_t __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(64)));
constexpr int32_t kHalf = 1 << (kFixedBits - 1);

// Both rows a and b at once: lanes 0-2 and 4-6 of a pixel. Makes outputs [begin, end). `pair` has 8
// lanes per input pixel, `sums` and `bytes` per output pixel. Output rows are written in steps of 3
// bytes by stores of 4: one byte of room behind them is needed.
FUNGI_CLONES void horizontal_pair(const uint8_t* a, const uint8_t* b,
                                  const AxisWeights<int32_t>& axis, size_t begin, size_t end,
                                  int32_t* pair, int32_t* sums, uint8_t* bytes, uint8_t* out_a,
                                  uint8_t* out_b) {
  const size_t taps = axis.taps, count = end - begin;
  for (size_t x = axis.first[begin]; x < axis.first[end - 1] + taps; ++x)
    for (size_t c = 0; c < 3; ++c) {
      pair[8 * x + c] = a[3 * x + c];
      pair[8 * x + 4 + c] = b[3 * x + c];
    }
  const int32_t* weight = axis.weight.data() + begin * taps;
  for (size_t x = 0; x < count; ++x, weight += taps) {
    Lanes sum = Lanes{} + kHalf;
    const int32_t* in = pair + 8 * size_t(axis.first[begin + x]);
    for (size_t j = 0; j < taps; ++j) {
      Lanes pixel;
      std::memcpy(&pixel, in + 8 * j, 32);
      sum += pixel * weight[j];
    }
    std::memcpy(sums + 8 * x, &sum, 32);
  }
  for (size_t i = 0; i < 8 * count; ++i)
    bytes[i] = uint8_t(std::clamp(sums[i] >> kFixedBits, 0, 255));
  for (size_t x = 0; x < count; ++x) {
    std::memcpy(out_a + 3 * x, bytes + 8 * x, 4);
    std::memcpy(out_b + 3 * x, bytes + 8 * x + 4, 4);
  }
}

// One output row = weighted sum of `taps` input rows. `sums` has room for `count` values.
FUNGI_CLONES void vertical_row(const uint8_t* in, size_t stride, const int32_t* weight, size_t taps,
                               size_t count, int32_t* sums, uint8_t* out) {
  std::fill_n(sums, count, kHalf);
  size_t j = 0;
  for (; j + 4 <= taps;
       j += 4) {  // four rows per visit of the sums; enlarging has exactly four taps
    const uint8_t *p = in + j * stride, *q = p + stride, *r = q + stride, *s = r + stride;
    const int32_t wp = weight[j], wq = weight[j + 1], wr = weight[j + 2], ws = weight[j + 3];
    for (size_t i = 0; i < count; ++i) sums[i] += p[i] * wp + q[i] * wq + r[i] * wr + s[i] * ws;
  }
  for (; j < taps; ++j) {
    const uint8_t* p = in + j * stride;
    const int32_t w = weight[j];
    for (size_t i = 0; i < count; ++i) sums[i] += p[i] * w;
  }
  for (size_t i = 0; i < count; ++i) out[i] = uint8_t(std::clamp(sums[i] >> kFixedBits, 0, 255));
}

}  // namespace

AxisWeights<float> float_weights(size_t from, size_t to, Filter filter) {
  return axis_weights<float>(from, to, filter);
}

AxisWeights<int32_t> fixed_weights(size_t from, size_t to, Filter filter) {
  const AxisWeights<double> exact = axis_weights<double>(from, to, filter);
  AxisWeights<int32_t> fixed{from, to, exact.taps, exact.first,
                             std::vector<int32_t>(exact.weight.size())};
  std::transform(exact.weight.begin(), exact.weight.end(), fixed.weight.begin(),
                 [](double w) { return int32_t(w * (1 << kFixedBits) + (w < 0 ? -0.5 : 0.5)); });
  return fixed;
}

Pixels Pixels::crop(size_t left, size_t top, size_t w, size_t h) const {
  FUNGI_ASSERT(left + w <= width && top + h <= height);
  return {rgb + top * stride + 3 * left, w, h, stride};
}

void check_proportion(size_t width, size_t height) {
  constexpr size_t kMost = 4096;
  if (std::max(width, height) <= kMost * std::min(width, height)) return;
  fail(fmt::format("expected a picture at most {} times as long as it is wide, found {}x{} pixels",
                   kMost, width, height),
       "picture", "crop it or remove it");
}

const AxisWeights<int32_t>& PillowResizer::weights(Axis& axis, size_t from, size_t to,
                                                   Filter filter) {
  if (axis.weights.from != from || axis.weights.to != to || axis.filter != filter)
    axis = {fixed_weights(from, to, filter), filter};
  return axis.weights;
}

void PillowResizer::resize(const Pixels& in, size_t width, size_t height, Filter filter,
                           Image& out) {
  resize(in, width, height, filter, {0, 0, width, height}, out);
}

void PillowResizer::resize(const Pixels& in, size_t width, size_t height, Filter filter,
                           const Window& window, Image& out) {
  FUNGI_ASSERT(in.width > 0 && in.height > 0 && window.width > 0 && window.height > 0);
  FUNGI_ASSERT(window.left + window.width <= width && window.top + window.height <= height);
  check_proportion(in.width, in.height);
  const bool down = height != in.height;
  const AxisWeights<int32_t>* rows =
      down ? &weights(vertical_, in.height, height, filter) : nullptr;
  const size_t row = 3 * window.width, bottom = window.top + window.height;
  // Input rows that the window needs.
  const size_t begin = down ? rows->first[window.top] : window.top;
  const size_t end = down ? rows->first[bottom - 1] + rows->taps : bottom;
  sums_.resize(8 * window.width);  // at least 3 * width, for both passes
  const uint8_t* middle = in.rgb + begin * in.stride + 3 * window.left;
  size_t stride = in.stride;
  if (width != in.width) {
    const AxisWeights<int32_t>& columns = weights(horizontal_, in.width, width, filter);
    stride = row + 4;
    middle_.resize((end - begin) * stride);
    bytes_.resize(8 * window.width);
    pair_.resize(8 * in.width);
    for (size_t y = begin; y < end; y += 2) {
      const size_t second = std::min(y + 1, end - 1);  // an odd last row is done twice
      horizontal_pair(in.rgb + y * in.stride, in.rgb + second * in.stride, columns, window.left,
                      window.left + window.width, pair_.data(), sums_.data(), bytes_.data(),
                      middle_.data() + (y - begin) * stride,
                      middle_.data() + (second - begin) * stride);
    }
    middle = middle_.data();
  }
  out.width = window.width;
  out.height = window.height;
  out.rgb.resize(row * window.height);
  for (size_t y = 0; y < window.height; ++y) {
    uint8_t* target = out.rgb.data() + y * row;
    const size_t source = down ? rows->first[window.top + y] - begin : y;
    if (down)
      vertical_row(middle + source * stride, stride,
                   rows->weight.data() + (window.top + y) * rows->taps, rows->taps, row,
                   sums_.data(), target);
    else
      std::memcpy(target, middle + source * stride, row);
  }
}

FUNGI_CLONES void blend_rows(const float* in, size_t stride, const float* weight, size_t taps,
                             size_t count, float* out) {
  constexpr size_t kBlock = 2, kLanes = 16;
  size_t i = 0;
  for (; i + kLanes * kBlock <= count; i += kLanes * kBlock) {
    Floats sum[kBlock] = {};
    for (size_t j = 0; j < taps; ++j)
      for (size_t k = 0; k < kBlock; ++k) {
        Floats pixel;
        std::memcpy(&pixel, in + j * stride + i + kLanes * k, sizeof pixel);
        sum[k] += pixel * weight[j];
      }
    std::memcpy(out + i, sum, sizeof sum);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (size_t j = 0; j < taps; ++j) sum += in[j * stride + i] * weight[j];
    out[i] = sum;
  }
}

}  // namespace fungi
