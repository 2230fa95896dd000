// SPDX-License-Identifier: Apache-2.0
// Principal components of concatenated features (SPEC 1.7): centred, not whitened, fitted on
// training rows only, and applied only when the asked width is smaller than both the rows and the
// features; otherwise features pass unchanged. Signs as scikit-learn's svd_flip leaves them: the
// largest number of each component is positive.
//
// With more rows than columns the products are in f32, and a direction with less than 2^-21 of the
// largest variance cannot be told from rounding: its component becomes zero. Rows of unit blocks
// are far from that; scale columns of one's own that differ by more than a thousand first.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "fungi/base/load_run.h"
#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"

namespace fungi {

class Comm;
class Covariance;
struct Moments;

// Const after fitting, safe to share between threads.
class Pca {
 public:
  // Whether the rule applies a PCA to `width` columns fitted on `rows` rows.
  static bool applies(size_t dim, size_t rows, size_t width) {
    return dim > 0 && dim < rows && dim < width;
  }

  // Fits on all rows at once; PcaFit below takes them in parts, with the same bytes as result.
  static Pca fit(View<const float> rows, size_t dim, Pool& pool);

  static Pca load(const std::filesystem::path& npz);
  void save(const std::filesystem::path& npz) const;

  bool identity() const { return components_.rows() == 0; }  // the rule did not apply
  size_t input_width() const { return width_; }
  size_t output_width() const { return identity() ? width_ : components_.rows(); }
  size_t fitted_rows() const { return rows_; }
  View<const float> components() const { return components_; }  // [dim, width], orthonormal rows
  const std::vector<float>& mean() const { return mean_; }
  const std::vector<float>& explained_variance() const {
    return variance_;
  }  // [dim], of the n−1 kind
  float total_variance() const { return total_variance_; }

  // out [n, output_width] = (rows − mean) · componentsᵀ. Each row depends on itself alone.
  Matrix<float> transform(View<const float> rows, Pool& pool) const;
  void transform(View<const float> rows, View<float> out, Pool& pool) const;

 private:
  friend class PcaFit;
  size_t width_ = 0, rows_ = 0;
  std::vector<float> mean_, variance_;
  float total_variance_ = 0;
  Matrix<float> components_;
};

// A fit over a stream. Keeps rows only until there are more of them than columns: then the
// covariance is enough. For one thread at a time.
class PcaFit {
 public:
  explicit PcaFit(size_t width);
  ~PcaFit();
  void add(View<const float> rows, Pool& pool);
  size_t rows() const;
  Pca finish(size_t dim, Pool& pool);  // the object is spent afterwards

  // Collective: the same fit, of `total` rows of which each rank loads a share alone.
  static Pca on_ranks(size_t total, size_t width, size_t dim, const LoadRun& load, Pool& pool,
                      Comm& ranks);

 private:
  static void fit_covariance(Pca& pca, Moments moments, size_t dim, Pool& pool);
  void fit_gram(Pca& pca, size_t dim, Pool& pool);

  size_t width_, kept_count_ = 0;
  std::vector<float> kept_;
  std::unique_ptr<Covariance> covariance_;
};

}  // namespace fungi
