// SPDX-License-Identifier: Apache-2.0
// Row-wise kernels: norms and their gradient, softmax, conversion between floats and elements, dot
// product. Sums run in kLanes partial sums of fixed order; statistics take two passes (mean, then
// centred squares). Internal to this room.
#pragma once

#include "fungi/kernel/elementary.h"

namespace fungi::kernel {
namespace {

struct Statistics {
  float mean, inverse_deviation;
};

FUNGI_INLINE Statistics statistics(bool rms, size_t d, const float* x, float eps) {
  float mean = 0;
  if (!rms)
    mean = sum_row(d, [&](Floats total, size_t j, size_t count)
                          FUNGI_FORCE { return total + load(x + j, count); }) /
           float(d);
  const float squares = sum_row(d, [&](Floats total, size_t j, size_t count) FUNGI_FORCE {
    const Floats c = load(x + j, count, mean) - mean;
    return fma(c, c, total);
  });
  return {mean, 1.0f / square_root(squares / float(d) + eps)};
}

template <class E>
void norm(bool rms, size_t m, size_t d, const float* x, size_t x_stride, const float* gamma,
          const float* beta, float eps, float* out, size_t out_stride, void* element_out,
          size_t element_stride) noexcept {
  Statistics next{};
  for (size_t i = 0; i < m; ++i) {
    const float* row = x + i * x_stride;
    // Those of the next row come first: their long chain ends while this row is written.
    const Statistics s = i == 0 ? statistics(rms, d, row, eps) : next;
    if (i + 1 < m) next = statistics(rms, d, row + x_stride, eps);
    float* floats = out ? out + i * out_stride : nullptr;
    E* elements = element_out ? static_cast<E*>(element_out) + i * element_stride : nullptr;
    for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
      const Floats unit = (load(row + j, count) - s.mean) * s.inverse_deviation;
      const Floats shift = beta ? load(beta + j, count) : Floats{};
      const Floats y = fma(unit, load(gamma + j, count), shift);
      if (floats) store(floats + j, count, y);
      if (elements) store_elements(elements + j, count, y);
    });
  }
}

// With u = (x - mean)/σ and g = γ·d_out: d_x = (g - mean(g) - u·mean(g u)) / σ; RMSNorm has no
// mean(g) term.
void norm_backward(bool rms, size_t m, size_t d, const float* x, size_t x_stride,
                   const float* gamma, float eps, const float* d_out, size_t d_out_stride,
                   bool accumulate, float* d_x, size_t d_x_stride) noexcept {
  for (size_t i = 0; i < m; ++i) {
    const float *row = x + i * x_stride, *d_row = d_out + i * d_out_stride;
    float* result = d_x + i * d_x_stride;
    const Statistics s = statistics(rms, d, row, eps);
    float mean_g = 0;
    if (!rms)
      mean_g = sum_row(d,
                       [&](Floats total, size_t j, size_t count) FUNGI_FORCE {
                         return fma(load(d_row + j, count), load(gamma + j, count), total);
                       }) /
               float(d);
    const float mean_gu = sum_row(d,
                                  [&](Floats total, size_t j, size_t count) FUNGI_FORCE {
                                    const Floats g =
                                        load(d_row + j, count) * load(gamma + j, count);
                                    const Floats u = load(row + j, count, s.mean) - s.mean;
                                    return fma(g, u * s.inverse_deviation, total);
                                  }) /
                          float(d);
    for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
      const Floats g = load(d_row + j, count) * load(gamma + j, count);
      const Floats u = (load(row + j, count) - s.mean) * s.inverse_deviation;
      const Floats y = fma(-u, all(mean_gu), g - mean_g) * s.inverse_deviation;
      store(result + j, count, accumulate ? load(result + j, count) + y : y);
    });
  }
}

FUNGI_INLINE Floats row_peaks(size_t d, const float* x) {
  const Floats lowest = all(-__builtin_inff());
  return fold_row(
      d, lowest,
      [&](Floats peak, size_t j, size_t count)
          FUNGI_FORCE { return max(load(x + j, count, -__builtin_inff()), peak); },
      [](Floats a, Floats b) FUNGI_FORCE { return max(a, b); });
}
FUNGI_INLINE float row_peak(size_t d, const float* x) { return largest(row_peaks(d, x)); }

// ln x for a positive x, by three Newton steps y += x e^-y - 1 from the exponent and a linear
// guess.
inline float logarithm(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  float y = (float(bits) * 0x1p-23f - 126.94269504f) * 0.693147181f;
  for (int i = 0; i < 3; ++i) y += x * exp(all(-y))[0] - 1.0f;
  return y;
}

void softmax(size_t m, size_t d, float* x, size_t x_stride, float* lse) noexcept {
  for (size_t i = 0; i < m; ++i) {
    float* row = x + i * x_stride;
    const float peak = row_peak(d, row);
    const Floats shift =
        all(peak == -__builtin_inff() ? 0.0f : peak);  // nothing but -inf: all zeros
    Floats sums{};
    for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
      const Floats e = exp(load(row + j, count, -__builtin_inff()) - shift);
      store(row + j, count, e);
      sums += e;
    });
    const float total = sum(sums);
    const Floats inverse = all(total > 0 ? 1.0f / total : 0.0f);
    for_each_vector(d, [&](size_t j, size_t count)
                           FUNGI_FORCE { store(row + j, count, load(row + j, count) * inverse); });
    if (lse) lse[i] = total > 0 ? peak + logarithm(total) : peak;
  }
}

template <class E>
void to_elements(size_t m, size_t d, const float* x, size_t x_stride, void* out,
                 size_t out_stride) noexcept {
  for (size_t i = 0; i < m; ++i)
    for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
      store_elements(static_cast<E*>(out) + i * out_stride + j, count,
                     load(x + i * x_stride + j, count));
    });
}

template <class E>
void to_floats(size_t m, size_t d, const void* x, size_t x_stride, float* out,
               size_t out_stride) noexcept {
  for (size_t i = 0; i < m; ++i)
    for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
      store(out + i * out_stride + j, count,
            load_elements(static_cast<const E*>(x) + i * x_stride + j, count));
    });
}

template <class E>
void split(size_t n, const float* x, void* out, void* rest) noexcept {
  for_each_vector(n, [&](size_t j, size_t count) FUNGI_FORCE {
    const Floats v = load(x + j, count);
    store_elements(static_cast<E*>(out) + j, count, v);
    store_elements(static_cast<E*>(rest) + j, count, v - rounded(E{}, v));
  });
}

float dot(size_t n, const float* x, const float* y) noexcept {
  constexpr size_t kChains = 8;  // enough independent sums to hide the latency of fma
  Floats total[kChains] = {};
  size_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    for (size_t c = 0; c < kChains; ++c)
      total[c] = fma(load(x + i + c * kLanes), load(y + i + c * kLanes), total[c]);
  for (size_t c = 0; i < n; ++c, i += kLanes) {
    const size_t count = smaller(kLanes, n - i);
    total[c] = fma(load(x + i, count), load(y + i, count), total[c]);
  }
  for (size_t half = kChains / 2; half > 0; half /= 2)
    for (size_t c = 0; c < half; ++c) total[c] += total[c + half];
  return sum(total[0]);
}

}  // namespace
}  // namespace fungi::kernel
