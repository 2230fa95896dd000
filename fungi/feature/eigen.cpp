// SPDX-License-Identifier: Apache-2.0
// Householder reduction A = Q T Qᵀ in panels: a panel's reflections H = I − τ v vᵀ touch the rest
// of the matrix only as A − V Wᵀ − W Vᵀ, so that the matrix is read once per column (the product
// with v) and written once per panel.
#include "fungi/feature/eigen.h"

#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/feature/eigen_kernel.h"

namespace fungi {
namespace {

constexpr size_t kPanel = 32;     // reflections per panel
constexpr size_t kParts = 8;      // of the product with one vector; fixed, whatever the threads
constexpr size_t kRowGrain = 64;  // rows per task elsewhere; fixed as well
constexpr size_t kSmall = 256;    // below this a task costs more than it saves

struct Panel {
  size_t first;  // column of the first reflection
  size_t count;
  Matrix<double> v;  // [count, n]: reflection s is zero before first + s + 1, one there
  Matrix<double> t;  // [count, count]: H_1 H_2 … = I − Vᵀ T V, T upper triangular
};

class Reduction {
 public:
  Reduction(Matrix<double>& a, Pool& pool)
      : a_(a),
        n_(a.rows()),
        pool_(pool),
        kernel_(eigen_kernel(best_isa())),
        diagonal_(n_),
        off_diagonal_(n_),
        product_(n_),
        partial_(kParts, n_),
        w_(kPanel, n_) {}

  void run() {
    for (size_t first = 0; first + 2 < n_; first += kPanel)
      reduce_panel(first, std::min(kPanel, n_ - 2 - first));
    for (size_t i = n_ >= 2 ? n_ - 2 : 0; i < n_; ++i) {
      diagonal_[i] = a_(i, i);
      if (i + 1 < n_) off_diagonal_[i] = a_(i, i + 1);
    }
  }

  std::vector<double>& diagonal() { return diagonal_; }
  std::vector<double>& off_diagonal() { return off_diagonal_; }

  // z [count, n] rows ← Q z.
  void transform_back(Matrix<double>& z) const {
    pool_.parallel_for(z.rows(), kRowGrain, [&](size_t begin, size_t end, unsigned) {
      const size_t rows = end - begin;
      Matrix<double> projected(rows, kPanel), mixed(rows, kPanel);
      for (auto panel = panels_.rbegin(); panel != panels_.rend(); ++panel) {
        const size_t b = panel->count, from = panel->first + 1, length = n_ - from;
        Matrix<double> columns(length, b);
        for (size_t s = 0; s < b; ++s)
          for (size_t c = 0; c < length; ++c) columns(c, s) = panel->v(s, from + c);
        std::fill_n(projected.data(), rows * kPanel, 0.0);
        kernel_.subtract_product(rows, b, length, z.row(begin) + from, z.stride(), columns.data(),
                                 b, projected.data(), kPanel);  // −z V
        for (size_t i = 0; i < rows; ++i)
          for (size_t s = 0; s < b; ++s) {  // (z V) Tᵀ
            double sum = 0;
            for (size_t u = s; u < b; ++u) sum -= projected(i, u) * panel->t(s, u);
            mixed(i, s) = sum;
          }
        kernel_.subtract_product(rows, length, b, mixed.data(), kPanel, panel->v.data() + from,
                                 panel->v.stride(), z.row(begin) + from, z.stride());
      }
    });
  }

 private:
  void reduce_panel(size_t first, size_t count) {
    Panel panel{first, count, Matrix<double>(count, n_), Matrix<double>(count, count)};
    for (size_t s = 0; s < count; ++s) {
      const size_t j = first + s, from = j + 1, length = n_ - from;
      // Row j as the panel's earlier reflections have left it; its first number is the diagonal.
      double* row = a_.row(j);
      for (size_t u = 0; u < s; ++u)
        kernel_.add_two(n_ - j, -panel.v(u, j), w_.row(u) + j, -w_(u, j), panel.v.row(u) + j,
                        row + j);
      diagonal_[j] = row[j];
      double* v = panel.v.row(s);
      const double tau = reflect(row + from, length, v + from, off_diagonal_[j]);
      double* w = w_.row(s);
      std::fill_n(w, n_, 0.0);
      if (tau != 0) {
        multiply(v, from);
        std::copy_n(product_.data() + from, length, w + from);
        for (size_t u = 0; u < s; ++u) {
          const double wv = kernel_.dot(length, w_.row(u) + from, v + from);
          const double vv = kernel_.dot(length, panel.v.row(u) + from, v + from);
          kernel_.add_two(length, -wv, panel.v.row(u) + from, -vv, w_.row(u) + from, w + from);
          panel.t(u, s) = vv;  // Vᵀ v, made into T's column below
        }
        for (size_t c = from; c < n_; ++c) w[c] *= tau;
        const double half = -0.5 * tau * kernel_.dot(length, w + from, v + from);
        for (size_t c = from; c < n_; ++c) w[c] += half * v[c];
      }
      // T's column: −τ T (Vᵀ v), then τ on the diagonal.
      for (size_t u = 0; u < s; ++u) {
        double sum = 0;
        for (size_t x = u; x < s; ++x) sum += panel.t(u, x) * panel.t(x, s);
        panel.t(u, s) = -tau * sum;
      }
      panel.t(s, s) = tau;
    }
    update(panel);
    panels_.push_back(std::move(panel));
  }

  // v with v[0] = 1 and τ so that (I − τ v vᵀ) x = (beta, 0, …).
  static double reflect(const double* x, size_t length, double* v, double& beta) {
    double scale = 0;
    for (size_t i = 1; i < length; ++i) scale = std::max(scale, std::fabs(x[i]));
    v[0] = 1;
    if (scale == 0) {
      beta = x[0];
      return 0;
    }
    double squares = 0;  // of the rest, scaled against underflow
    for (size_t i = 1; i < length; ++i) squares += x[i] / scale * (x[i] / scale);
    const double norm = std::hypot(x[0], scale * std::sqrt(squares));
    beta = x[0] > 0 ? -norm : norm;
    const double inverse = 1 / (x[0] - beta);
    for (size_t i = 1; i < length; ++i) v[i] = x[i] * inverse;
    return (beta - x[0]) / beta;
  }

  // product_ = A v over the rows and columns from `from` on.
  void multiply(const double* v, size_t from) {
    const size_t length = n_ - from;
    const size_t parts = length < kSmall ? 1 : kParts;
    const auto part_begin = [&](size_t part) {  // parts of about the same area of the triangle
      if (part == parts) return n_;
      const double share = double(part) / double(parts);
      return from + size_t(double(length) * (1 - std::sqrt(1 - share))) / 4 * 4;
    };
    const auto body = [&](size_t begin, size_t end, unsigned) {
      for (size_t part = begin; part < end; ++part) {
        std::fill_n(partial_.row(part) + from, length, 0.0);
        kernel_.symmetric_product(part_begin(part), part_begin(part + 1), n_, a_.data(),
                                  a_.stride(), v, product_.data(), partial_.row(part));
      }
    };
    if (parts == 1)
      body(0, 1, 0);
    else
      pool_.parallel_for(parts, 1, body);
    for (size_t part = 0; part < parts; ++part)
      for (size_t c = from; c < n_; ++c) product_[c] += partial_(part, c);
  }

  // A −= V Wᵀ + W Vᵀ on the upper triangle behind the panel.
  void update(const Panel& panel) {
    const size_t b = panel.count, from = panel.first + b;
    Matrix<double> left(n_ - from, 2 * b), right(2 * b, n_);
    for (size_t s = 0; s < b; ++s) {
      for (size_t i = from; i < n_; ++i)
        left(i - from, s) = panel.v(s, i), left(i - from, b + s) = w_(s, i);
      std::copy_n(w_.row(s), n_, right.row(s));
      std::copy_n(panel.v.row(s), n_, right.row(b + s));
    }
    pool_.parallel_for(n_ - from, kRowGrain, [&](size_t begin, size_t end, unsigned) {
      const size_t start =
          from + begin;  // the rows' own triangle is updated whole: what lies below is not read
      kernel_.subtract_product(end - begin, n_ - start, 2 * b, left.row(begin), left.stride(),
                               right.data() + start, right.stride(), a_.row(start) + start,
                               a_.stride());
    });
  }

  Matrix<double>& a_;
  const size_t n_;
  Pool& pool_;
  const EigenKernel& kernel_;
  std::vector<Panel> panels_;
  std::vector<double> diagonal_, off_diagonal_, product_;
  Matrix<double> partial_, w_;
};

// The `count` largest eigenpairs of the tridiagonal matrix; vectors as rows, smallest first.
void solve_tridiagonal(std::vector<double>& d, std::vector<double>& e, std::vector<double>& values,
                       Matrix<double>& vectors) {
  const lapack_int n = lapack_int(d.size()), count = lapack_int(vectors.rows());
  std::vector<double> d2 = d, e2 = e;
  std::vector<lapack_int> support(2 * d.size());
  lapack_int found = 0;
  lapack_logical try_accurate = 1;
  values.resize(d.size());
  const lapack_int info = LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', n, d2.data(), e2.data(), 0, 0,
                                         n - count + 1, n, &found, values.data(), vectors.data(), n,
                                         count, support.data(), &try_accurate);
  if (info == 0 && found == count) {
    values.resize(size_t(count));
    return;
  }
  // The fast method gives up on a few pathological matrices; the QR iteration does not.
  Matrix<double> all(d.size(), d.size());
  if (LAPACKE_dsteqr(LAPACK_COL_MAJOR, 'I', n, d.data(), e.data(), all.data(), n) != 0)
    fail("the eigenvalue iteration did not converge", "covariance",
         "look for extreme values in the features");
  values.assign(d.end() - count, d.end());
  for (lapack_int i = 0; i < count; ++i)
    std::copy_n(all.row(size_t(n - count + i)), d.size(), vectors.row(size_t(i)));
}

}  // namespace

Eigen largest_eigen(Matrix<double>& a, size_t count, Pool& pool) {
  const size_t n = a.rows();
  FUNGI_ASSERT(n > 0 && a.cols() == n && count >= 1 && count <= n);
  Reduction reduction(a, pool);
  reduction.run();
  std::vector<double> values;
  Matrix<double> vectors(count, n);
  solve_tridiagonal(reduction.diagonal(), reduction.off_diagonal(), values, vectors);
  reduction.transform_back(vectors);
  Eigen out{std::vector<double>(count), Matrix<double>(count, n)};
  for (size_t i = 0; i < count; ++i) {
    out.values[i] = values[count - 1 - i];
    std::copy_n(vectors.row(count - 1 - i), n, out.vectors.row(i));
  }
  return out;
}

}  // namespace fungi
