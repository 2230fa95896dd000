// SPDX-License-Identifier: Apache-2.0
// The losses written straight from SPEC 2, templated on the scalar so that a complex step
// differentiates them to the last digits: the oracle of every gradient test here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/random.h"
#include "fungi/objective/objective.h"

namespace fungi::reference {

template <class S>
using Rows = std::vector<std::vector<S>>;
using Complex = std::complex<double>;

inline double real(double x) { return x; }
inline double real(Complex x) { return x.real(); }

template <class S>
S log_sum_exp(const std::vector<S>& x) {
  double top = real(x[0]);
  for (const S& value : x) top = std::max(top, real(value));
  S sum = 0;
  for (const S& value : x) sum += std::exp(value - top);
  return top + std::log(sum);
}

template <class S, class T>
S dot(const std::vector<S>& x, const std::vector<T>& y) {
  S sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

template <class S>
std::vector<S> unit(std::vector<S> x) {
  const S norm = std::sqrt(dot(x, x));
  for (S& value : x) value /= norm;
  return x;
}

template <class S>
std::vector<S> affine(const Rows<double>& w, const std::vector<double>& c,
                      const std::vector<S>& x) {
  std::vector<S> z;
  for (size_t i = 0; i < w.size(); ++i) z.push_back(dot(x, w[i]) + (c.empty() ? 0.0 : c[i]));
  return z;
}

template <class S>
std::vector<S> divided(std::vector<S> x, double by) {
  for (S& value : x) value /= by;
  return x;
}

template <class S>
S kl_uniform_first(const std::vector<S>& z, double tau) {
  const std::vector<S> scaled = divided(z, tau);
  const double d = static_cast<double>(z.size());
  S sum = 0;
  for (const S& value : scaled) sum += (-std::log(d) - (value - log_sum_exp(scaled))) / d;
  return sum / d;
}

template <class S>
S kl_model_first(const std::vector<S>& z, double tau) {
  const std::vector<S> scaled = divided(z, tau);
  S sum = 0;
  for (const S& value : scaled) {
    const S log_q = value - log_sum_exp(scaled);
    sum += std::exp(log_q) * (log_q + std::log(static_cast<double>(z.size())));
  }
  return sum;
}

template <class S>
S dino(const Rows<S>& student, const Rows<double>& teacher, double tau_s, double tau_t, bool skip) {
  S loss = 0;
  for (size_t g = 0; g < teacher.size(); ++g) {
    const std::vector<double> t = divided(teacher[g], tau_t);
    const double t_lse = log_sum_exp(t);
    for (size_t v = 0; v < student.size(); ++v) {
      if (skip && g == v) continue;
      const std::vector<S> s = divided(student[v], tau_s);
      const S s_lse = log_sum_exp(s);
      for (size_t j = 0; j < s.size(); ++j) loss -= std::exp(t[j] - t_lse) * (s[j] - s_lse);
    }
  }
  return loss;
}

template <class S>
S simclr(const Rows<S>& latents, const Rows<double>& negatives, double tau, double tau_d) {
  Rows<S> z;
  for (const auto& row : latents) z.push_back(unit(row));
  Rows<double> n;
  for (const auto& row : negatives) n.push_back(unit(row));
  const double p = static_cast<double>(z.size());
  S loss = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    std::vector<S> logits;
    for (const auto& negative : n) logits.push_back(dot(z[i], negative) / tau_d);
    for (size_t j = 0; j < z.size(); ++j) {
      if (i == j) continue;
      const S s = dot(z[i], z[j]);
      logits.push_back(s / tau_d);
      loss -= s / (tau * (p - 1));
    }
    loss += log_sum_exp(logits);
  }
  return loss / p;
}

// Prototypes [set][k]; one assignment per set.
template <class S>
S deepcluster(const Rows<S>& embeddings, const Rows<double>& raw_head,
              const std::vector<Rows<double>>& prototypes, const std::vector<size_t>& assigned,
              double tau) {
  Rows<double> head;
  for (const auto& row : raw_head) head.push_back(unit(row));
  S loss = 0;
  for (const auto& e : embeddings) {
    const std::vector<S> z = unit(affine(head, {}, e));
    for (size_t h = 0; h < prototypes.size(); ++h) {
      const std::vector<S> scores = divided(affine(prototypes[h], {}, z), tau);
      loss += log_sum_exp(scores) - scores[assigned[h]];
    }
  }
  return loss / static_cast<double>(prototypes.size() * embeddings.size());
}

// ∂f/∂x for all rows, by a complex step of 1e-30: no cancellation, so exact to rounding.
inline Rows<double> gradient(const Rows<double>& x,
                             const std::function<Complex(const Rows<Complex>&)>& f) {
  Rows<Complex> at;
  for (const auto& row : x) at.emplace_back(row.begin(), row.end());
  Rows<double> result;
  for (size_t i = 0; i < x.size(); ++i) {
    result.emplace_back();
    for (size_t j = 0; j < x[i].size(); ++j) {
      at[i][j] = Complex(x[i][j], 1e-30);
      result[i].push_back(f(at).imag() / 1e-30);
      at[i][j] = x[i][j];
    }
  }
  return result;
}

// Fixtures.

inline Rows<double> random_rows(size_t n, size_t d, uint64_t seed, double scale = 1) {
  const RandomStream stream(seed, "test rows");
  Rows<double> rows(n, std::vector<double>(d));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < d; ++j)
      rows[i][j] = static_cast<float>(scale * stream.normal(i * d + j));  // exact as float
  return rows;
}

template <class T>
Matrix<T> matrix_of(const Rows<double>& rows) {
  Matrix<T> m(rows.size(), rows[0].size());
  for (size_t i = 0; i < m.rows(); ++i)
    for (size_t j = 0; j < m.cols(); ++j) m(i, j) = static_cast<T>(rows[i][j]);
  return m;
}

inline Rows<double> rows_of(View<const float> m) {
  Rows<double> rows;
  for (size_t i = 0; i < m.rows; ++i) rows.emplace_back(m.row(i), m.row(i) + m.cols);
  return rows;
}

inline const Matrix<float>& state_named(const std::vector<NamedMatrix>& state,
                                        const std::string& name) {
  for (const NamedMatrix& matrix : state)
    if (matrix.name == name) return matrix.values;
  throw std::runtime_error("no state " + name);
}

// Heads that were drawn apart: no two arrays begin alike.
inline void expect_all_differ(const std::vector<NamedMatrix>& state) {
  for (const NamedMatrix& x : state)
    for (const NamedMatrix& y : state) {
      if (&x == &y) continue;
      EXPECT_FALSE(std::equal(x.values.data(), x.values.data() + 4, y.values.data()))
          << x.name << " and " << y.name;
    }
}

// |found - expected| within `relative` of the largest expected entry.
template <class T>
void expect_rows_near(View<const T> found, const Rows<double>& expected, double relative) {
  ASSERT_EQ(found.rows, expected.size());
  double largest = 0;
  for (const auto& row : expected)
    for (const double value : row) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0);
  for (size_t i = 0; i < found.rows; ++i) {
    ASSERT_EQ(found.cols, expected[i].size());
    for (size_t j = 0; j < found.cols; ++j)
      EXPECT_NEAR(found(i, j), expected[i][j], relative * largest)
          << "row " << i << " column " << j;
  }
}

}  // namespace fungi::reference
