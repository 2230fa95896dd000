// SPDX-License-Identifier: Apache-2.0
// Whisper's two convolutions over time, each as one product: three neighbouring frames make a row.
// A few tokens at a time, so that what lies between the two stays in the cache.
#include <algorithm>
#include <cstring>

#include "fungi/backbone/embed.h"

namespace fungi {
namespace {

constexpr size_t kTaps = 3, kStride = 2;  // of the second convolution; the first has stride 1
constexpr size_t kTokens = 64;            // at a time

// [width, channels, taps] → [width, taps, channels]: what lies together in a row of frames.
Matrix<float> taps_first(const Matrix<float>& weight) {
  const size_t channels = weight.cols() / kTaps;
  Matrix<float> out(weight.rows(), weight.cols());
  for (size_t i = 0; i < weight.rows(); ++i)
    for (size_t tap = 0; tap < kTaps; ++tap)
      for (size_t c = 0; c < channels; ++c) out(i, tap * channels + c) = weight(i, c * kTaps + tap);
  return out;
}

// Rows of the product x · Wᵀ with GELU: as elements, or into the stream with positions.
void multiply(const kernel::Kernel& kernel, Scratch& t, size_t rows, const Elements& x,
              const Linear& linear, kernel::Epilogue& e) {
  const size_t needed = kernel.gemm_scratch(rows, linear.out, linear.in);
  if (t.kernel.bytes() < needed) t.kernel = Buffer(needed);
  e.bias = linear.bias_data();
  e.activation = kernel::Activation::gelu;
  kernel.gemm(rows, x.at(0, 0), x.stride(), linear.forward, e, t.kernel.data());
}

}  // namespace

void load_convolutions(const kernel::Kernel& kernel, const Tensors& tensors, Embedding& e) {
  e.conv1 = load_input_weights(kernel, taps_first(tensors.matrix("conv1.weight")),
                               tensors.vector("conv1.bias"));
  const Matrix<float> second = taps_first(tensors.matrix("conv2.weight"));
  e.conv2 = slice_linear({kernel}, second, tensors.vector("conv2.bias"), 0, second.rows());
}

void convolve(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
              const float* bank, Scratch& t, float* x, size_t x_stride) {
  const size_t frames = a.input_w, bins = a.input_h, d = a.width, size = kernel.element_size;
  const size_t most = kStride * (kTokens - 1) + kTaps;  // frames between the two
  std::vector<float> row(kTaps * bins);
  for (size_t token = 0; token < a.patches(); token += kTokens) {
    const size_t count = std::min(kTokens, a.patches() - token);
    const long first = long(kStride * token) - 1;  // the frame before the first token's own
    const size_t between = kStride * (count - 1) + kTaps;
    t.patches.ensure(kernel, most, input_parts(kernel) * kTaps * bins);
    for (size_t i = 0; i < between; ++i) {
      for (size_t tap = 0; tap < kTaps; ++tap) {
        const long frame = first + long(i + tap) - 1;
        if (frame < 0 || frame >= long(frames))
          std::fill_n(row.data() + tap * bins, bins, 0.0f);
        else
          std::copy_n(bank + size_t(frame) * bins, bins, row.data() + tap * bins);
      }
      std::byte* out = t.patches.row(i);
      write_input(kernel, row.size(), row.data(), out, out + row.size() * size);
    }
    t.gathered.ensure(kernel, most, d);
    kernel::Epilogue inner;
    inner.element_out = t.gathered.row(0), inner.element_stride = t.gathered.stride();
    multiply(kernel, t, between, t.patches, e.conv1, inner);
    for (size_t i = 0; i < between; ++i)  // beyond either end the second convolution sees zeros
      if (const long frame = first + long(i); frame < 0 || frame >= long(frames))
        std::memset(t.gathered.row(i), 0, d * size);

    t.hidden.ensure(kernel, kTokens, kTaps * d);
    for (size_t i = 0; i < count; ++i)
      for (size_t tap = 0; tap < kTaps; ++tap)
        std::memcpy(t.hidden.row(i) + tap * d * size, t.gathered.at(kStride * i + tap, 0),
                    d * size);
    kernel::Epilogue outer;
    outer.residual = e.positions.row(token), outer.residual_stride = e.positions.stride();
    outer.out = x + token * x_stride, outer.out_stride = x_stride;
    multiply(kernel, t, count, t.hidden, e.conv2, outer);
  }
}

}  // namespace fungi
