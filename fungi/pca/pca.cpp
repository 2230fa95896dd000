// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/pca.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/kernel/kernel.h"
#include "fungi/pca/covariance.h"
#include "fungi/pca/eigen.h"
#include "fungi/pca/eigen_kernel.h"

namespace fungi {
namespace {

constexpr size_t kRowBlock = 128;  // rows transformed together

// scikit-learn's svd_flip: the number of largest magnitude (the first, if several) becomes
// positive.
double sign_of(const double* v, size_t n) {
  size_t largest = 0;
  for (size_t i = 1; i < n; ++i)
    if (std::fabs(v[i]) > std::fabs(v[largest])) largest = i;
  return v[largest] < 0 ? -1 : 1;
}

// A direction along which the training rows do not differ says nothing: it becomes zero, which
// changes no order of distances to training rows. What rounding leaves of such a direction is a
// share of the largest variance: in f64 within the bound of numpy's matrix_rank, on squared
// singular values; in f32 products below 2^-22, for all widths tried.
constexpr double kRoundingOfF32 = 0x1p-21;
double rounding_of_f64(size_t width) { return double(width) * 0x1p-52; }

}  // namespace

PcaFit::PcaFit(size_t width) : width_(width), covariance_(std::make_unique<Covariance>(width)) {}
PcaFit::~PcaFit() = default;

size_t PcaFit::rows() const { return kept_count_ + covariance_->rows(); }

void PcaFit::add(View<const float> rows, Pool& pool) {
  if (rows.cols != width_)
    fail(fmt::format("expected rows of width {}, found {}", width_, rows.cols), "features",
         "use the same model and features for all rows");
  if (covariance_->rows() == 0 && kept_count_ + rows.rows <= width_) {
    for (size_t i = 0; i < rows.rows; ++i)
      kept_.insert(kept_.end(), rows.row(i), rows.row(i) + width_);
    kept_count_ += rows.rows;
    return;
  }
  if (kept_count_ > 0) {
    covariance_->add(View<const float>(kept_.data(), kept_count_, width_), pool);
    kept_count_ = 0;
    kept_ = {};
  }
  covariance_->add(rows, pool);
}

Pca PcaFit::finish(size_t dim, Pool& pool) {
  Pca pca;
  pca.width_ = width_;
  pca.rows_ = rows();
  if (pca.rows_ == 0) fail("expected rows to fit a PCA on, found none", "features", "");
  if (!Pca::applies(dim, pca.rows_, width_)) return pca;
  pca.mean_.resize(width_);
  pca.variance_.resize(dim);
  pca.components_ = Matrix<float>(dim, width_);
  if (kept_count_ > 0)
    fit_gram(pca, dim, pool);
  else
    fit_covariance(pca, covariance_->finish(pool), dim, pool);
  return pca;
}

// Fewer rows than columns are few: rank 0 fits alone then. It also solves the eigenproblem alone.
Pca PcaFit::on_ranks(size_t total, size_t width, size_t dim, const LoadRun& load, Pool& pool,
                     Comm& ranks) {
  Pca pca;
  if (total <= width || !Pca::applies(dim, total, width)) {
    PcaFit fit(width);
    if (ranks.first()) fit.add(load(0, total), pool), pca = fit.finish(dim, pool);
  } else if (Moments moments = moments_on_ranks(total, width, load, pool, ranks);
             ranks.first()) {
    pca.width_ = width, pca.rows_ = total;
    pca.mean_.resize(width), pca.variance_.resize(dim), pca.components_ = Matrix<float>(dim, width);
    fit_covariance(pca, std::move(moments), dim, pool);
  }
  ByteWriter out;
  out.number(pca.width_), out.number(pca.rows_), out.number(pca.total_variance_);
  out.numbers(pca.mean_), out.numbers(pca.variance_), out.matrix<float>(pca.components_);
  const std::string bytes = ranks.broadcast(out.take());
  ByteReader in(bytes);
  pca.width_ = in.number<size_t>(), pca.rows_ = in.number<size_t>();
  pca.total_variance_ = in.number<float>();
  pca.mean_ = in.numbers<float>(), pca.variance_ = in.numbers<float>();
  pca.components_ = in.matrix<float>();
  return pca;
}

void PcaFit::fit_covariance(Pca& pca, Moments moments, size_t dim, Pool& pool) {
  const double degrees = double(moments.rows - 1);
  const size_t width = pca.width_;
  double total = 0;
  for (size_t c = 0; c < width; ++c) {
    pca.mean_[c] = float(moments.mean[c]);
    total += moments.scatter(c, c);
  }
  pca.total_variance_ = float(total / degrees);
  const Eigen eigen = largest_eigen(moments.scatter, dim, pool);
  for (size_t i = 0; i < dim; ++i) {
    if (eigen.values[i] <= eigen.values[0] * kRoundingOfF32) continue;
    pca.variance_[i] = float(eigen.values[i] / degrees);
    const double sign = sign_of(eigen.vectors.row(i), width);
    for (size_t c = 0; c < width; ++c) pca.components_(i, c) = float(sign * eigen.vectors(i, c));
  }
}

// Fewer rows than columns: the eigenvectors u of the n x n products of rows give the components as
// Xᵀu / ‖Xᵀu‖. All in f64: squaring halves the digits, and there are few rows.
void PcaFit::fit_gram(Pca& pca, size_t dim, Pool& pool) {
  const size_t n = kept_count_, grain = 32;
  Matrix<double> rows(n, width_), columns(width_, n), gram(n, n);
  pool.parallel_for(width_, grain, [&](size_t begin, size_t end, unsigned) {
    for (size_t c = begin; c < end; ++c) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += kept_[i * width_ + c];
      if (!std::isfinite(sum)) {
        size_t row = 0;
        while (row + 1 < n && std::isfinite(kept_[row * width_ + c])) ++row;
        fail_not_finite("features", row);
      }
      const double mean = sum / double(n);
      pca.mean_[c] = float(mean);
      for (size_t i = 0; i < n; ++i)
        columns(c, i) = rows(i, c) = double(kept_[i * width_ + c]) - mean;
    }
  });
  const EigenKernel& kernel = eigen_kernel(best_isa());
  pool.parallel_for(n, grain, [&](size_t begin, size_t end, unsigned) {  // −X Xᵀ
    kernel.subtract_product(end - begin, n, width_, rows.row(begin), width_, columns.data(), n,
                            gram.row(begin), n);
  });
  double total = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) gram(i, j) = -gram(i, j);
    total += gram(i, i);
  }
  const double degrees = double(n - 1);
  pca.total_variance_ = float(total / degrees);
  const Eigen eigen = largest_eigen(gram, dim, pool);
  pool.parallel_for(dim, grain, [&](size_t begin, size_t end, unsigned) {
    Matrix<double> directions(end - begin, width_);  // −uᵀX
    kernel.subtract_product(end - begin, width_, n, eigen.vectors.row(begin), n, rows.data(),
                            width_, directions.data(), width_);
    for (size_t i = begin; i < end; ++i) {
      if (eigen.values[i] <= eigen.values[0] * rounding_of_f64(width_)) continue;
      double* direction = directions.row(i - begin);
      const double norm = std::sqrt(kernel.dot(width_, direction, direction));
      const double factor = sign_of(direction, width_) / norm;
      pca.variance_[i] = float(eigen.values[i] / degrees);
      for (size_t c = 0; c < width_; ++c) pca.components_(i, c) = float(direction[c] * factor);
    }
  });
}

Pca Pca::fit(View<const float> rows, size_t dim, Pool& pool) {
  PcaFit fit(rows.cols);
  fit.add(rows, pool);
  return fit.finish(dim, pool);
}

Matrix<float> Pca::transform(View<const float> rows, Pool& pool) const {
  Matrix<float> out(rows.rows, output_width());
  transform(rows, out, pool);
  return out;
}

void Pca::transform(View<const float> rows, View<float> out, Pool& pool) const {
  if (rows.cols != width_)
    fail(fmt::format("expected rows of width {} as fitted, found {}", width_, rows.cols),
         "features", "use the same model and features as for the fit");
  if (out.rows != rows.rows || out.cols != output_width())
    fail(fmt::format("expected room for {} x {} numbers, found {} x {}", rows.rows, output_width(),
                     out.rows, out.cols),
         "Pca::transform");
  if (identity()) {
    for (size_t i = 0; i < rows.rows; ++i) std::copy_n(rows.row(i), width_, out.row(i));
    return;
  }
  const auto& table = kernel::f32_kernel();
  const kernel::PackedMatrix packed = kernel::pack(table, components_);
  const size_t stride = round_up(width_, table.k_multiple);
  pool.parallel_for(rows.rows, kRowBlock, [&](size_t begin, size_t end, unsigned) {
    Matrix<float> centred(end - begin, stride);
    for (size_t i = begin; i < end; ++i) {
      float check = 0;  // NaN or infinity times zero is NaN
      for (size_t c = 0; c < width_; ++c) {
        centred(i - begin, c) = rows(i, c) - mean_[c];
        check += rows(i, c) * 0.0f;
      }
      if (check != 0) fail_not_finite("features", i);
    }
    Buffer scratch(table.gemm_scratch(end - begin, packed.n, width_));
    kernel::Epilogue epilogue;
    epilogue.out = out.row(begin);
    epilogue.out_stride = out.stride;
    table.gemm(end - begin, centred.data(), stride, packed, epilogue, scratch.data());
  });
}

void Pca::save(const std::filesystem::path& npz) const {
  const std::vector<int64_t> size{int64_t(width_), int64_t(rows_)};
  const std::vector<float> total{total_variance_};
  std::vector<std::pair<std::string, NpyArray>> arrays{{"width_and_rows", npy_array(size)}};
  if (!identity()) {
    arrays.emplace_back("mean", npy_array(mean_));
    arrays.emplace_back("components", npy_array(components_));
    arrays.emplace_back("explained_variance", npy_array(variance_));
    arrays.emplace_back("total_variance", npy_array(total));
  }
  write_npz(npz, arrays);
}

Pca Pca::load(const std::filesystem::path& npz) {
  const NpzFile file = NpzFile::open(npz);
  const auto refuse = [&](const std::string& what) {
    fail(what, npz.string(), "use a file written by this program's PCA");
  };
  if (!file.contains("width_and_rows")) refuse("expected an array 'width_and_rows'");
  const std::vector<int64_t> size = file.read_integers("width_and_rows");
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) refuse("expected two positive sizes");
  Pca pca;
  pca.width_ = size_t(size[0]);
  pca.rows_ = size_t(size[1]);
  if (!file.contains("components")) return pca;
  for (const char* name : {"mean", "explained_variance", "total_variance"})
    if (!file.contains(name)) refuse(fmt::format("expected an array '{}'", name));
  pca.components_ = file.read("components");
  const Matrix<float> mean = file.read("mean"), variance = file.read("explained_variance");
  const Matrix<float> total = file.read("total_variance");
  if (pca.components_.rows() == 0 || pca.components_.cols() != pca.width_ ||
      mean.rows() != pca.width_ || mean.cols() != 1 || variance.rows() != pca.components_.rows() ||
      variance.cols() != 1 || total.rows() * total.cols() != 1)
    refuse(fmt::format(
        "expected components of width {} with a mean and variances to match, found {} x {}",
        pca.width_, pca.components_.rows(), pca.components_.cols()));
  pca.mean_.assign(mean.data(), mean.data() + pca.width_);
  pca.variance_.assign(variance.data(), variance.data() + variance.rows());
  pca.total_variance_ = total(0, 0);
  return pca;
}

}  // namespace fungi
