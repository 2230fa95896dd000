// SPDX-License-Identifier: Apache-2.0
// Activations and their derivatives: gelu(x) = x·Φ(x) exactly (erf), its tanh approximation,
// x·σ(1.702 x), x·σ(x), relu. Internal to this room.
#pragma once

#include "fungi/kernel/elementary.h"

namespace fungi::kernel {
namespace {

constexpr float kInverseSqrt2Pi = 0.398942280f;
// tanh(√(2/π)(x + 0.044715 x³)) through the logistic function: (1 + tanh(z)) / 2 = σ(2z).
constexpr float kTanhLinear = 1.595769122f,
                kTanhCubic = 0.0713548163f;  // 2√(2/π), that times 0.044715

// Quick: four digits, good enough for a result that will be rounded to bf16.
template <Activation A, bool Quick = false>
FUNGI_INLINE Floats activated(Floats x) {
  if constexpr (A == Activation::relu) return max(Floats{}, x);  // NaN stays NaN
  if constexpr (A == Activation::gelu && Quick) return gelu_for_bf16(x);
  if constexpr (A == Activation::gelu && !Quick) {
    const Floats part = x * normal_tail(x, exp(-0.5f * x * x));
    return x > 0.0f ? x - part : part;
  }
  if constexpr (A == Activation::gelu_tanh)
    return x * logistic<Quick>(x * fma(x * x, all(kTanhCubic), all(kTanhLinear)));
  if constexpr (A == Activation::quick_gelu) return x * logistic<Quick>(1.702f * x);
  if constexpr (A == Activation::silu) return x * logistic<Quick>(x);
  return x;
}

// d/dx of x·σ(z(x)): σ + x·z'·σ·(1 - σ)
FUNGI_INLINE Floats gated_slope(Floats x, Floats z, Floats z_slope) {
  Floats rest;
  const Floats s = logistic(z, rest);
  return fma(x * z_slope, s * rest, s);
}

template <Activation A>
FUNGI_INLINE Floats derivative(Floats x) {
  if constexpr (A == Activation::relu) return x > 0.0f ? all(1.0f) : Floats{};
  if constexpr (A == Activation::gelu) {
    const Floats bell = exp(-0.5f * x * x), tail = normal_tail(x, bell);
    return fma(x * kInverseSqrt2Pi, bell, x > 0.0f ? 1.0f - tail : tail);
  }
  if constexpr (A == Activation::gelu_tanh) {
    const Floats square = x * x;
    return gated_slope(x, x * fma(square, all(kTanhCubic), all(kTanhLinear)),
                       fma(square, all(3 * kTanhCubic), all(kTanhLinear)));
  }
  if constexpr (A == Activation::quick_gelu) return gated_slope(x, 1.702f * x, all(1.702f));
  if constexpr (A == Activation::silu) return gated_slope(x, x, all(1.0f));
  return all(1.0f);
}

// Calls f.template operator()<A>() with the activation as a constant: one branch per block, none
// per element.
template <class F>
FUNGI_INLINE void with_activation(Activation a, F f) {
  switch (a) {
    case Activation::none:
      return f.template operator()<Activation::none>();
    case Activation::relu:
      return f.template operator()<Activation::relu>();
    case Activation::gelu:
      return f.template operator()<Activation::gelu>();
    case Activation::gelu_tanh:
      return f.template operator()<Activation::gelu_tanh>();
    case Activation::quick_gelu:
      return f.template operator()<Activation::quick_gelu>();
    case Activation::silu:
      return f.template operator()<Activation::silu>();
  }
}

inline void activate(Activation f, size_t m, size_t d, const float* u, size_t u_stride, float* out,
                     size_t out_stride) noexcept {
  with_activation(f, [=]<Activation A>() {
    for (size_t i = 0; i < m; ++i)
      for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
        store(out + i * out_stride + j, count, activated<A>(load(u + i * u_stride + j, count)));
      });
  });
}

inline void activate_backward(Activation f, size_t m, size_t d, const float* u, size_t u_stride,
                              const float* d_out, size_t d_out_stride, float* d_u,
                              size_t d_u_stride) noexcept {
  with_activation(f, [=]<Activation A>() {
    for (size_t i = 0; i < m; ++i)
      for_each_vector(d, [&](size_t j, size_t count) FUNGI_FORCE {
        const Floats slope = derivative<A>(load(u + i * u_stride + j, count));
        store(d_u + i * d_u_stride + j, count, load(d_out + i * d_out_stride + j, count) * slope);
      });
  });
}

}  // namespace
}  // namespace fungi::kernel
