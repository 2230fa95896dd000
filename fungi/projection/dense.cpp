// SPDX-License-Identifier: Apache-2.0
// Dense projections by GEMM: up to 128 samples share one pass over R. A panel of rows of every M is
// formed and packed, the same stretch of R is expanded from its bits a few rows at a time, and
// their product is added up in f64. The stretches depend on the layer's shape only, so the order of
// the sums does too. Of samples with a single pair, y = Σ_i b_i (R_i [a;1]) over the outputs i: all
// [a;1] are packed once, and each stretch R_i meets them in a product whose end does the rest.
#include <algorithm>
#include <limits>

#include "fungi/projection/gradient.h"
#include "fungi/projection/kinds.h"
#include "fungi/projection/rows.h"

namespace fungi {
namespace {

constexpr size_t kSamples = 128;   // per pass over R
constexpr size_t kPanelRows = 16;  // of M; a multiple of 8 keeps stretches of R on whole bytes
constexpr size_t kStretch = 2048;  // entries of vec(M) per product, at most
constexpr size_t kRowBlock = 32;   // rows of R expanded at a time; with kStretch they stay in L2
constexpr size_t kPairRows =
    112;  // the same for pairs: with sums for a thousand of them, half of L2

class DenseProjection final : public Projection {
 public:
  DenseProjection(const ProjectionOptions& options, const LayerShape& shape, size_t row_count,
                  Precision precision, std::unique_ptr<ProjectionRows> source)
      : Projection(options, shape, row_count),
        kernel_(kernel::kernel_for(best_isa(), precision)),
        source_(std::move(source)) {}

 private:
  std::vector<Piece> split(size_t samples, unsigned threads) const override {
    const size_t passes = (samples + kSamples - 1) / kSamples;
    const size_t parts = cuts(passes, threads);
    const size_t height = round_up((rows() + parts - 1) / parts, kRowBlock);
    std::vector<Piece> pieces;
    for (size_t p = 0; p < passes; ++p) {
      const size_t first = samples * p / passes, end = samples * (p + 1) / passes;
      for (size_t r = 0; r < rows(); r += height)
        pieces.push_back({first, end - first, r, std::min(height, rows() - r)});
    }
    return pieces;
  }

  // Into how many parts R is cut, so that all threads have work to the end. A part costs its share
  // of the products and, again, the panels of M.
  static size_t cuts(size_t passes, unsigned threads) {
    constexpr double kPanels = 0.15;  // beside the products of a whole pass
    size_t best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 1; c <= threads; ++c) {
      const double turns = static_cast<double>((passes * c + threads - 1) / threads);
      const double cost = turns * (1 / static_cast<double>(c) + kPanels);
      if (cost < least) best = c, least = cost;
    }
    return best;
  }

  void run(std::span<const GradientFactors> samples, const Piece& piece,
           View<float> y) const override {
    std::vector<GradientRows> gradients;
    for (size_t s = 0; s < piece.samples; ++s)
      gradients.emplace_back(samples[piece.first_sample + s], layer());
    Matrix<double> sums(piece.rows, piece.samples);
    const size_t longest = std::min(kPanelRows, layer().outputs) * layer().row_length();
    Matrix<float> panel(piece.samples, longest);
    for (size_t first = 0; first < layer().outputs; first += kPanelRows) {
      const size_t count = std::min(kPanelRows, layer().outputs - first);
      const size_t length = count * layer().row_length();
      for (size_t s = 0; s < piece.samples; ++s) gradients[s].form(first, count, panel.row(s));
      add_panel(piece, first * layer().row_length(), length, panel, sums);
    }
    const double scale = source_->scale();
    for (size_t s = 0; s < piece.samples; ++s)
      for (size_t r = 0; r < piece.rows; ++r)
        y(piece.first_sample + s, piece.first_row + r) = static_cast<float>(scale * sums(r, s));
  }

  void run_pairs(View<const float> b, View<const float> a, Precision precision, View<float> y,
                 Pool& pool) const override {
    if (kind() == ProjectionKind::matrix) precision = Precision::f32;  // bf16 would round it
    const kernel::Kernel& kernel = kernel::kernel_for(best_isa(), precision);
    const size_t n = b.rows, length = layer().row_length();
    Matrix<float> ends(n, length), factors(layer().outputs, n);
    for (size_t t = 0; t < n; ++t) {
      std::copy_n(a.row(t), a.cols, ends.row(t));
      if (layer().bias) ends(t, a.cols) = 1;
      for (size_t i = 0; i < b.cols; ++i) factors(i, t) = b(t, i);
    }
    const kernel::PackedMatrix packed = kernel::pack(kernel, ends);
    const size_t blocks = (rows() + kPairRows - 1) / kPairRows;
    pool.parallel_for(blocks, 1, [&](size_t block, size_t, unsigned) {
      const size_t first = block * kPairRows, count = std::min(kPairRows, rows() - first);
      if (precision == Precision::bf16)
        add_pairs<kernel::bfloat16>(kernel, packed, factors, first, count, y);
      else
        add_pairs<float>(kernel, packed, factors, first, count, y);
    });
  }

  // y of rows first .. first + count of R.
  template <class Element>
  void add_pairs(const kernel::Kernel& kernel, const kernel::PackedMatrix& packed,
                 const Matrix<float>& factors, size_t first, size_t count, View<float> y) const {
    const size_t n = packed.n, length = packed.k;
    Matrix<float> sums(count, n);
    Matrix<Element> stretch(count, round_up(length, std::max<size_t>(kernel.k_multiple, 16)));
    std::vector<Element> wide(round_up(length, 8) + 8);  // stretches begin at whole bytes
    Buffer scratch(kernel.gemm_scratch(count, n, length));
    kernel::Epilogue epilogue;
    epilogue.residual = sums.data(), epilogue.residual_stride = n;
    epilogue.out = sums.data(), epilogue.out_stride = n;
    epilogue.columns_alone = true;  // a sample is a column
    for (size_t i = 0; i < layer().outputs; ++i) {
      const size_t begin = i * length, whole = begin / 8 * 8;
      for (size_t r = 0; r < count; ++r) {
        source_->fill(first + r, whole, begin + length - whole, wide.data());
        std::copy_n(wide.data() + (begin - whole), length, stretch.row(r));
      }
      epilogue.scale = factors.row(i);
      kernel.gemm(count, stretch.data(), stretch.stride(), packed, epilogue, scratch.data());
    }
    const double scale = source_->scale();
    for (size_t t = 0; t < n; ++t)
      for (size_t r = 0; r < count; ++r)
        y(t, first + r) = static_cast<float>(scale * static_cast<double>(sums(r, t)));
  }

  // sums += R[piece rows, begin .. begin + length) · panelᵀ
  void add_panel(const Piece& piece, size_t begin, size_t length, const Matrix<float>& panel,
                 Matrix<double>& sums) const {
    const size_t stretches = (length + kStretch - 1) / kStretch;
    const size_t step = round_up((length + stretches - 1) / stretches, 64);
    const size_t n = piece.samples,
                 stride = round_up(step, std::max<size_t>(kernel_.k_multiple, 16));
    kernel::PackedMatrix packed;
    packed.n = n;
    packed.data = Buffer(kernel_.packed_bytes(n, step));
    Buffer elements(kRowBlock * stride * kernel_.element_size);
    Buffer scratch(kernel_.gemm_scratch(kRowBlock, n, step));
    Matrix<float> products(kRowBlock, n);
    kernel::Epilogue epilogue;
    epilogue.out = products.data();
    epilogue.out_stride = n;
    epilogue.columns_alone = true;  // a sample is a column
    for (size_t offset = 0; offset < length; offset += step) {
      packed.k = std::min(step, length - offset);
      kernel_.pack(panel.data() + offset, panel.stride(), false, n, packed.k, packed.data.data());
      if (packed.k < step) elements = Buffer(elements.bytes());  // zeros after the last entry
      for (size_t r = 0; r < piece.rows; r += kRowBlock) {
        const size_t count = std::min(kRowBlock, piece.rows - r);
        for (size_t i = 0; i < count; ++i)
          expand(piece.first_row + r + i, begin + offset, packed.k,
                 elements.data() + i * stride * kernel_.element_size);
        kernel_.gemm(count, elements.data(), stride, packed, epilogue, scratch.data());
        for (size_t i = 0; i < count; ++i)
          for (size_t s = 0; s < n; ++s) sums(r + i, s) += products(i, s);
      }
    }
  }

  void expand(size_t row, size_t begin, size_t count, std::byte* out) const {
    if (kernel_.precision == Precision::bf16)
      source_->fill(row, begin, count, reinterpret_cast<kernel::bfloat16*>(out));
    else
      source_->fill(row, begin, count, reinterpret_cast<float*>(out));
  }

  const kernel::Kernel& kernel_;
  std::unique_ptr<ProjectionRows> source_;
};

}  // namespace

std::unique_ptr<Projection> make_dense_projection(ProjectionOptions options,
                                                  const LayerShape& layer) {
  const bool given = options.kind == ProjectionKind::matrix;
  const Precision precision = given ? Precision::f32 : options.precision;
  if (given) options.rows = options.matrix.rows();
  ProjectionOptions facts;
  facts.kind = options.kind;
  facts.rows = options.rows;
  facts.seed = options.seed;
  return std::make_unique<DenseProjection>(
      facts, layer, facts.rows, precision,
      make_projection_rows(std::move(options), layer.gradient_length()));
}

}  // namespace fungi
