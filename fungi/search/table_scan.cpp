// SPDX-License-Identifier: Apache-2.0
// The scan through the GEMM of a kernel table: f32 everywhere, bf16 where there are tiles. The
// bound of a product of k terms summed in f32 in any order is (k+2)·u·‖x‖‖y‖; rounding a row to
// bf16 moves it by at most 2^-8 of its length.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fungi/base/cpu.h"
#include "fungi/kernel/kernel.h"
#include "fungi/search/scan.h"

namespace fungi::search {
namespace {

constexpr double kBf16Unit = 0x1p-8, kSmallestNormal = 0x1p-126;

class TableScan final : public Scan {
 public:
  TableScan(bool bf16, const ExactKey& exact, std::vector<float> centre, Pool& pool)
      : Scan(exact, std::move(centre)),
        kernel_(kernel::kernel_for(best_isa(), bf16 ? Precision::bf16 : Precision::f32)),
        stride_(round_up(width_, kernel_.k_multiple)),
        sum_error_((double(width_) + 16) * 0x1p-24 * 1.01),
        rounding_(bf16 ? kBf16Unit : 0),
        lost_(bf16 ? std::sqrt(double(width_)) * kSmallestNormal : 0) {
    scratch_.resize(pool.threads());
    for (unsigned i = 0; i < pool.threads(); ++i) dots_.emplace_back(query_rows(), part_rows());
  }

  size_t part_rows() const override { return 256; }
  size_t query_rows() const override { return 96; }

  void scan(size_t query, size_t count, size_t part, unsigned worker, Hit* hits,
            uint32_t* counts) override {
    const size_t first = part * part_rows(), rows = std::min(part_rows(), loaded_->count - first);
    Matrix<float>& dots = dots_[worker];
    const size_t bytes = kernel_.gemm_scratch(count, rows, width_);
    if (scratch_[worker].bytes() < bytes) scratch_[worker] = Buffer(bytes);
    kernel::Epilogue epilogue;
    epilogue.out = dots.data();
    epilogue.out_stride = dots.stride();
    kernel_.gemm(count, queries_.data() + query * stride_ * kernel_.element_size, stride_,
                 packed_[part], epilogue, scratch_[worker].data());
    const RowTerms terms = terms_from(first);
    for (size_t i = 0; i < count; ++i)
      counts[i] = exact_.kernel().filter(rows, dots.row(i), terms, query_terms_[query + i],
                                         hits + i * part_rows());
  }

 protected:
  void reserve_queries(size_t count) override {
    queries_ = Buffer(count * stride_ * kernel_.element_size);
  }
  void reserve_rows(size_t count) override {
    if (rows_.rows() < count) rows_ = Matrix<float>(count, width_);
  }
  void store_query(size_t query, const float* v, double norm) override {
    kernel_.to_elements(1, width_, v, padded_width_,
                        queries_.data() + query * stride_ * kernel_.element_size, stride_);
    set_query_terms(query, 1, norm * (1 + rounding_) + lost_, norm * rounding_ + lost_, sum_error_);
  }
  void store_row(size_t row, const float* v, double norm) override {
    std::copy(v, v + width_, rows_.row(row));
    set_row_terms(row, 1, norm * rounding_ + lost_, norm, 0);
  }
  void finish_rows(Pool& pool) override {
    packed_.resize(parts());
    pool.parallel_for(parts(), 1, [&](size_t begin, size_t end, unsigned) {
      for (size_t p = begin; p < end; ++p) {
        const size_t first = p * part_rows();
        packed_[p] = kernel::pack(kernel_, std::as_const(rows_).view().slice(
                                               first, std::min(part_rows(), loaded_->count - first)));
      }
    });
  }

 private:
  const kernel::Kernel& kernel_;
  const size_t stride_;
  const double sum_error_, rounding_, lost_;
  Buffer queries_;
  Matrix<float> rows_;
  std::vector<kernel::PackedMatrix> packed_;
  std::vector<Buffer> scratch_;
  std::vector<Matrix<float>> dots_;
};

}  // namespace

std::unique_ptr<Scan> make_table_scan(bool bf16, const ExactKey& exact, std::vector<float> centre,
                                      Pool& pool) {
  return std::make_unique<TableScan>(bf16, exact, std::move(centre), pool);
}

}  // namespace fungi::search
