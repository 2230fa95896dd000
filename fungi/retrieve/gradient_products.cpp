// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/gradient_products.h"

#include <algorithm>

#include "fungi/projection/gradient.h"

namespace fungi {
namespace {

constexpr size_t kTileTerms =
    256;                           // factor rows of either side per product: the result stays in L2
constexpr size_t kPanelRows = 16;  // of a gradient, formed at a time
constexpr size_t kStretch = 2048;  // products summed in f32
constexpr size_t kRows = 64;       // gradients of either side per product

// Rows for a product: padded with zeros as kernels want them.
Matrix<float> element_rows(const kernel::Kernel& kernel, size_t rows, size_t cols) {
  return Matrix<float>(rows, cols, round_up(cols, kernel.k_multiple));
}

}  // namespace

struct GradientProducts::Stacked {
  Stacked(const kernel::Kernel& kernel, const LayerShape& layer,
          std::span<const GradientFactors> samples)
      : first(samples.size() + 1, 0) {
    for (size_t i = 0; i < samples.size(); ++i) first[i + 1] = first[i] + samples[i].b.rows;
    b = element_rows(kernel, first.back(), layer.outputs);
    a = element_rows(kernel, first.back(), layer.inputs);
    for (size_t i = 0; i < samples.size(); ++i) {
      for (size_t v = 0; v < samples[i].b.rows; ++v) {
        std::copy_n(samples[i].b.row(v), layer.outputs, b.row(first[i] + v));
        std::copy_n(samples[i].a.row(v), layer.inputs, a.row(first[i] + v));
      }
    }
  }
  size_t size() const { return first.size() - 1; }
  // How many samples from `begin` on make up a tile.
  size_t tile(size_t begin) const {
    size_t end = begin + 1;
    while (end < size() && first[end + 1] - first[begin] <= kTileTerms) ++end;
    return end - begin;
  }

  Matrix<float> b, a;         // [terms, outputs], [terms, inputs]
  std::vector<size_t> first;  // row of each sample's first term, and the number of all
};

GradientProducts::GradientProducts(const LayerShape& layer, size_t x_terms, size_t y_terms, Way way)
    : kernel_(kernel::f32_kernel()), layer_(layer), way_(way) {
  if (way_ != Way::automatic) return;
  const size_t by_factors = x_terms * y_terms * (layer.outputs + layer.row_length());
  way_ = by_factors <= layer.gradient_length() ? Way::factors : Way::gradients;
}

// All of x against one tile of y.
void GradientProducts::multiply_factors(const Stacked& x, std::span<const GradientFactors> y,
                                        View<double> out) const {
  const Stacked tile(kernel_, layer_, y);
  const size_t n = tile.first.back();
  for (size_t i = 0; i < out.rows; ++i) std::fill_n(out.row(i), out.cols, 0.0);
  if (n == 0) return;
  const kernel::PackedMatrix packed_b = kernel::pack(kernel_, tile.b);
  const kernel::PackedMatrix packed_a = kernel::pack(kernel_, tile.a);
  const std::vector<float> ones(n, 1.0f);  // of [a;1]
  for (size_t begin = 0; begin < x.size();) {
    const size_t count = x.tile(begin), row = x.first[begin], m = x.first[begin + count] - row;
    Matrix<float> bb(m, n), aa(m, n);
    Buffer scratch(std::max(kernel_.gemm_scratch(m, n, layer_.outputs),
                            kernel_.gemm_scratch(m, n, layer_.inputs)));
    kernel::Epilogue epilogue;
    epilogue.out_stride = n;
    epilogue.out = bb.data();
    kernel_.gemm(m, x.b.row(row), x.b.stride(), packed_b, epilogue, scratch.data());
    epilogue.out = aa.data();
    if (layer_.bias) epilogue.bias = ones.data();
    kernel_.gemm(m, x.a.row(row), x.a.stride(), packed_a, epilogue, scratch.data());
    for (size_t i = begin; i < begin + count; ++i) {
      for (size_t v = x.first[i] - row; v < x.first[i + 1] - row; ++v) {
        for (size_t j = 0; j < tile.size(); ++j) {
          double sum = 0;
          for (size_t w = tile.first[j]; w < tile.first[j + 1]; ++w)
            sum += static_cast<double>(bb(v, w)) * aa(v, w);
          out(i, j) += sum;
        }
      }
    }
    begin += count;
  }
}

// out += x · yᵀ over the first `length` columns, in stretches that depend on the length alone.
void GradientProducts::add_panel(View<const float> x, View<const float> y, size_t length,
                                 View<double> out) const {
  const size_t stretches = (length + kStretch - 1) / kStretch;
  const size_t step = round_up((length + stretches - 1) / stretches, 64);
  kernel::PackedMatrix packed;
  packed.n = y.rows;
  packed.data = Buffer(kernel_.packed_bytes(y.rows, step));
  Buffer scratch(kernel_.gemm_scratch(kRows, y.rows, step));
  Matrix<float> products(kRows, y.rows);
  kernel::Epilogue epilogue;
  epilogue.out = products.data();
  epilogue.out_stride = y.rows;
  for (size_t offset = 0; offset < length; offset += step) {
    packed.k = std::min(step, length - offset);
    kernel_.pack(y.data + offset, y.stride, false, y.rows, packed.k, packed.data.data());
    for (size_t i = 0; i < x.rows; i += kRows) {
      const size_t m = std::min(kRows, x.rows - i);
      kernel_.gemm(m, x.row(i) + offset, x.stride, packed, epilogue, scratch.data());
      for (size_t r = 0; r < m; ++r)
        for (size_t j = 0; j < y.rows; ++j) out(i + r, j) += products(r, j);
    }
  }
}

class GradientProducts::Panels {
 public:
  Panels(const kernel::Kernel& kernel, const LayerShape& layer,
         std::span<const GradientFactors> samples)
      : layer_(layer),
        panel_(element_rows(kernel, samples.size(),
                            std::min(kPanelRows, layer.outputs) * layer.row_length())) {
    for (const GradientFactors& f : samples) gradients_.emplace_back(f, layer);
  }

  // Rows first .. first + kPanelRows (or the last) of gradient i.
  void form(size_t i, size_t first) {
    gradients_[i].form(first, rows(first), panel_.row(i));
    std::fill(panel_.row(i) + length(first), panel_.row(i) + panel_.stride(), 0.0f);
  }
  size_t rows(size_t first) const { return std::min(kPanelRows, layer_.outputs - first); }
  size_t length(size_t first) const { return rows(first) * layer_.row_length(); }
  View<const float> view() const { return panel_.view(); }

 private:
  const LayerShape& layer_;
  std::vector<GradientRows> gradients_;
  Matrix<float> panel_;
};

void GradientProducts::multiply(std::span<const GradientFactors> x,
                                std::span<const GradientFactors> y, View<double> out,
                                Pool& pool) const {
  FUNGI_ASSERT(out.rows == x.size() && out.cols == y.size());
  const auto columns = [&](size_t begin, size_t end) {
    return View<double>(out.data + begin, out.rows, end - begin, out.stride);
  };
  if (way_ == Way::factors) {
    const Stacked stacked(kernel_, layer_, x);
    size_t longest = 1;
    for (const GradientFactors& f : y) longest = std::max(longest, f.b.rows);
    pool.parallel_for(y.size(), std::max<size_t>(1, kTileTerms / longest),
                      [&](size_t begin, size_t end, unsigned) {
                        multiply_factors(stacked, y.subspan(begin, end - begin),
                                         columns(begin, end));
                      });
    return;
  }
  for (size_t i = 0; i < out.rows; ++i) std::fill_n(out.row(i), out.cols, 0.0);
  Panels x_panels(kernel_, layer_, x), y_panels(kernel_, layer_, y);
  for (size_t first = 0; first < layer_.outputs; first += kPanelRows) {
    pool.parallel_for(x.size() + y.size(), 8, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = begin; i < end; ++i)
        i < x.size() ? x_panels.form(i, first) : y_panels.form(i - x.size(), first);
    });
    pool.parallel_for(y.size(), kRows, [&](size_t begin, size_t end, unsigned) {
      add_panel(x_panels.view(), y_panels.view().slice(begin, end - begin), x_panels.length(first),
                columns(begin, end));
    });
  }
}

std::vector<double> GradientProducts::squares(std::span<const GradientFactors> x,
                                              Pool& pool) const {
  std::vector<double> squares(x.size(), 0.0);
  pool.parallel_for(x.size(), 1, [&](size_t i, size_t, unsigned) {
    const View<double> one(&squares[i], 1, 1);
    if (way_ == Way::factors) {
      multiply_factors(Stacked(kernel_, layer_, x.subspan(i, 1)), x.subspan(i, 1), one);
      return;
    }
    Panels panels(kernel_, layer_, x.subspan(i, 1));
    for (size_t first = 0; first < layer_.outputs; first += kPanelRows) {
      panels.form(0, first);
      add_panel(panels.view(), panels.view(), panels.length(first), one);
    }
  });
  return squares;
}

}  // namespace fungi
