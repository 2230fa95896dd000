// SPDX-License-Identifier: Apache-2.0
// The plain truth: every kernel as the formula says, templated on the scalar
// (float, double, complex<double> for derivatives by complex step). Comparisons look at the real
// part. Rows are compact unless a stride is given; gradients overwrite their outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <vector>

#include "fungi/kernel/table.h"

namespace fungi::kernel::reference {

inline double real(double x) { return x; }
inline double real(std::complex<double> x) { return x.real(); }

inline float exponential(float x) { return std::exp(x); }
inline double exponential(double x) { return std::exp(x); }
inline std::complex<double> exponential(std::complex<double> x) { return std::exp(x); }

// erf at x + i·h for a tiny h: first order is exact to rounding, which is all that a complex step
// needs.
inline float error_function(float x) { return std::erf(x); }
inline double error_function(double x) { return std::erf(x); }
inline std::complex<double> error_function(std::complex<double> x) {
  const double slope = 2 / std::sqrt(std::acos(-1.0)) * std::exp(-x.real() * x.real());
  return {std::erf(x.real()), slope * x.imag()};
}

template <class T>
T logistic(T x) {
  return T(1) / (T(1) + exponential(-x));
}

template <class T>
T activation(Activation f, T x) {
  switch (f) {
    case Activation::none:
      return x;
    case Activation::relu:
      return real(x) <= 0 ? T(0) : x;  // NaN stays NaN
    case Activation::gelu:
      return T(0.5) * x * (T(1) + error_function(x * T(std::sqrt(0.5))));
    case Activation::gelu_tanh: {
      const T z = T(std::sqrt(2 / std::acos(-1.0))) * (x + T(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + std::tanh(z));
    }
    case Activation::quick_gelu:
      return x * logistic(T(1.702) * x);
    case Activation::silu:
      return x * logistic(x);
  }
  return x;
}

template <class T>
T activation_slope(Activation f, T x) {
  switch (f) {
    case Activation::none:
      return T(1);
    case Activation::relu:
      return real(x) > 0 ? T(1) : T(0);
    case Activation::gelu: {
      const T density = exponential(T(-0.5) * x * x) / T(std::sqrt(2 * std::acos(-1.0)));
      return T(0.5) * (T(1) + error_function(x * T(std::sqrt(0.5)))) + x * density;
    }
    case Activation::gelu_tanh: {
      const T c = T(std::sqrt(2 / std::acos(-1.0)));
      const T y = std::tanh(c * (x + T(0.044715) * x * x * x));
      const T inner = c * (T(1) + T(3 * 0.044715) * x * x);
      return T(0.5) * (T(1) + y) + T(0.5) * x * (T(1) - y * y) * inner;
    }
    case Activation::quick_gelu: {
      const T s = logistic(T(1.702) * x);
      return s + T(1.702) * x * s * (T(1) - s);
    }
    case Activation::silu: {
      const T s = logistic(x);
      return s + x * s * (T(1) - s);
    }
  }
  return T(1);
}

// y [m, n] = x [m, k] · wᵀ, w [n, k]
template <class T>
void gemm(size_t m, size_t n, size_t k, const T* x, size_t x_stride, const T* w, size_t w_stride,
          T* y, size_t y_stride) {
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      T total(0);
      for (size_t l = 0; l < k; ++l) total += x[i * x_stride + l] * w[j * w_stride + l];
      y[i * y_stride + j] = total;
    }
}

// In place; returns log Σ exp. A row of nothing but -inf becomes zeros, with -inf.
template <class T>
T softmax(size_t d, T* x) {
  T peak = x[0];
  for (size_t j = 1; j < d; ++j)
    if (real(x[j]) > real(peak)) peak = x[j];
  if (real(peak) == -std::numeric_limits<double>::infinity()) {
    std::fill(x, x + d, T(0));
    return peak;
  }
  T total(0);
  for (size_t j = 0; j < d; ++j) total += x[j] = exponential(x[j] - peak);
  for (size_t j = 0; j < d; ++j) x[j] /= total;
  return peak + std::log(total);
}

template <class T>
void norm(bool rms, size_t d, const T* x, const T* gamma, const T* beta, double eps, T* y) {
  T mean(0), square(0);
  if (!rms)
    for (size_t j = 0; j < d; ++j) mean += x[j] / T(double(d));
  for (size_t j = 0; j < d; ++j) square += (x[j] - mean) * (x[j] - mean) / T(double(d));
  const T inverse = T(1) / std::sqrt(square + T(eps));
  for (size_t j = 0; j < d; ++j) {
    y[j] = (x[j] - mean) * inverse * gamma[j];
    if (beta) y[j] += beta[j];
  }
}

template <class T>
void norm_backward(bool rms, size_t d, const T* x, const T* gamma, double eps, const T* d_y,
                   T* d_x) {
  T mean(0), square(0), mean_g(0), mean_gu(0);
  const T n = T(double(d));
  if (!rms)
    for (size_t j = 0; j < d; ++j) mean += x[j] / n;
  for (size_t j = 0; j < d; ++j) square += (x[j] - mean) * (x[j] - mean) / n;
  const T inverse = T(1) / std::sqrt(square + T(eps));
  for (size_t j = 0; j < d; ++j) {
    if (!rms) mean_g += d_y[j] * gamma[j] / n;
    mean_gu += d_y[j] * gamma[j] * (x[j] - mean) * inverse / n;
  }
  for (size_t j = 0; j < d; ++j)
    d_x[j] = inverse * (d_y[j] * gamma[j] - mean_g - (x[j] - mean) * inverse * mean_gu);
}

// One sample with all its heads: the sizes, with q, k, v, out compact rows of heads·head_dim.
template <class T>
struct AttentionProblem {
  size_t queries, tokens, heads, head_dim;
  double scale = 1;
  std::vector<T> q, k, v;
  std::vector<double> bias;  // [heads, queries, tokens]; empty means none

  size_t width() const { return heads * head_dim; }

  std::vector<T> probabilities(size_t head, size_t query) const {
    std::vector<T> p(tokens);
    for (size_t j = 0; j < tokens; ++j) {
      T s(0);
      for (size_t l = 0; l < head_dim; ++l)
        s += q[query * width() + head * head_dim + l] * k[j * width() + head * head_dim + l];
      p[j] = T(scale) * s;
      if (!bias.empty()) p[j] += T(bias[(head * queries + query) * tokens + j]);
    }
    softmax(tokens, p.data());
    return p;
  }
};

template <class T>
std::vector<T> attention(const AttentionProblem<T>& a) {
  std::vector<T> out(a.queries * a.width(), T(0));
  for (size_t h = 0; h < a.heads; ++h)
    for (size_t i = 0; i < a.queries; ++i) {
      const std::vector<T> p = a.probabilities(h, i);
      for (size_t j = 0; j < a.tokens; ++j)
        for (size_t l = h * a.head_dim; l < (h + 1) * a.head_dim; ++l)
          out[i * a.width() + l] += p[j] * a.v[j * a.width() + l];
    }
  return out;
}

template <class T>
struct AttentionGradient {
  std::vector<T> q, k, v;
};

template <class T>
AttentionGradient<T> attention_backward(const AttentionProblem<T>& a, const std::vector<T>& d_out) {
  const size_t w = a.width();
  AttentionGradient<T> g{std::vector<T>(a.queries * w), std::vector<T>(a.tokens * w),
                         std::vector<T>(a.tokens * w)};
  for (size_t h = 0; h < a.heads; ++h)
    for (size_t i = 0; i < a.queries; ++i) {
      const std::vector<T> p = a.probabilities(h, i);
      std::vector<T> d_p(a.tokens, T(0));
      T inner(0);
      const size_t begin = h * a.head_dim, end = begin + a.head_dim;
      for (size_t j = 0; j < a.tokens; ++j) {
        for (size_t l = begin; l < end; ++l) {
          d_p[j] += d_out[i * w + l] * a.v[j * w + l];
          g.v[j * w + l] += p[j] * d_out[i * w + l];
        }
        inner += p[j] * d_p[j];
      }
      for (size_t j = 0; j < a.tokens; ++j) {
        const T d_s = T(a.scale) * p[j] * (d_p[j] - inner);
        for (size_t l = begin; l < end; ++l) {
          g.q[i * w + l] += d_s * a.k[j * w + l];
          g.k[j * w + l] += d_s * a.q[i * w + l];
        }
      }
    }
  return g;
}

}  // namespace fungi::kernel::reference
