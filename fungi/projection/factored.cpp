// SPDX-License-Identifier: Apache-2.0
// The factored projection: rows u_r ⊗ w_r of R, so that y_r = s Σ_i (u_r·b_i)(w_r·[a_i;1]) costs
// rows · (outputs + inputs) per factor pair instead of rows · outputs · inputs. u and w are
// independent signs, hence E⟨y, y'⟩ = ⟨M, M'⟩.
#include <algorithm>
#include <cmath>

#include "fungi/projection/kinds.h"
#include "fungi/projection/rows.h"

namespace fungi {
namespace {

constexpr size_t kFactors = 64;  // factor pairs per product; of one sample or of several

class FactoredProjection final : public Projection {
 public:
  FactoredProjection(const ProjectionOptions& options, const LayerShape& shape)
      : Projection(options, shape, options.rows),
        kernel_(kernel::kernel_for(best_isa(), Precision::f32)) {
    outputs_ = kernel::pack(kernel_, signs("projection/factored/outputs", layer().outputs));
    const Matrix<float> w = signs("projection/factored/inputs", layer().row_length());
    inputs_ = kernel::pack(kernel_, {w.data(), rows(), layer().inputs, w.stride()});
    if (layer().bias) {
      constants_ = Matrix<float>(1, rows());
      for (size_t r = 0; r < rows(); ++r) constants_(0, r) = w(r, layer().inputs);
    }
  }

 private:
  Matrix<float> signs(std::string_view purpose, size_t length) const {
    Matrix<float> matrix(rows(), length);
    std::vector<uint64_t> words((length + 63) / 64);
    for (size_t r = 0; r < rows(); ++r) {
      sign_words(seed(), purpose, r, 0, words.size(), words.data());
      for (size_t j = 0; j < length; ++j)
        matrix(r, j) = words[j / 64] >> (j % 64) & 1 ? 1.0f : -1.0f;
    }
    return matrix;
  }

  std::vector<Piece> split(size_t samples, unsigned threads) const override {
    const size_t share = std::max<size_t>(1, (samples + threads - 1) / threads);
    std::vector<Piece> pieces;
    for (size_t s = 0; s < samples; s += share)
      pieces.push_back({s, std::min(share, samples - s), 0, rows()});
    return pieces;
  }

  // Factor pairs of consecutive samples are gathered until a product is full; a sample's pairs are
  // added in their order.
  void run(std::span<const GradientFactors> samples, const Piece& piece,
           View<float> y) const override {
    Gathered gathered(*this);
    std::vector<double> sum(rows());
    size_t writing = piece.first_sample;  // the sample whose sum is being formed
    const auto finish_until = [&](size_t sample) {
      for (; writing < sample; ++writing) {
        const double scale = 1 / std::sqrt(static_cast<double>(rows()));
        for (size_t r = 0; r < rows(); ++r) y(writing, r) = static_cast<float>(scale * sum[r]);
        std::fill(sum.begin(), sum.end(), 0.0);
      }
    };
    const auto flush = [&] {
      gathered.multiply();
      for (size_t i = 0; i < gathered.count; ++i) {
        finish_until(gathered.owner[i]);
        for (size_t r = 0; r < rows(); ++r)
          sum[r] += static_cast<double>(gathered.ub(i, r)) * gathered.wa(i, r);
      }
      gathered.count = 0;
    };
    const size_t end = piece.first_sample + piece.samples;
    for (size_t s = piece.first_sample; s < end; ++s)
      for (size_t v = 0; v < samples[s].b.rows; ++v) {
        gathered.add(s, samples[s].b.row(v), samples[s].a.row(v));
        if (gathered.count == kFactors) flush();
      }
    flush();
    finish_until(end);
  }

  struct Gathered {
    explicit Gathered(const FactoredProjection& p)
        : projection(p),
          b(kFactors, p.layer().outputs, round_up(p.layer().outputs, p.kernel_.k_multiple)),
          a(kFactors, p.layer().inputs, round_up(p.layer().inputs, p.kernel_.k_multiple)),
          ub(kFactors, p.rows()),
          wa(kFactors, p.rows()),
          scratch(std::max(p.kernel_.gemm_scratch(kFactors, p.rows(), p.layer().outputs),
                           p.kernel_.gemm_scratch(kFactors, p.rows(), p.layer().inputs))) {}

    void add(size_t sample, const float* output_factor, const float* input_factor) {
      std::copy_n(output_factor, b.cols(), b.row(count));
      std::copy_n(input_factor, a.cols(), a.row(count));
      owner[count++] = sample;
    }
    void multiply() {
      if (count == 0) return;
      kernel::Epilogue epilogue;
      epilogue.out_stride = projection.rows();
      epilogue.out = ub.data();
      projection.kernel_.gemm(count, b.data(), b.stride(), projection.outputs_, epilogue,
                              scratch.data());
      epilogue.out = wa.data();
      epilogue.bias = projection.constants_.empty() ? nullptr : projection.constants_.data();
      projection.kernel_.gemm(count, a.data(), a.stride(), projection.inputs_, epilogue,
                              scratch.data());
    }

    const FactoredProjection& projection;
    Matrix<float> b, a, ub, wa;
    Buffer scratch;
    size_t owner[kFactors] = {}, count = 0;
  };

  const kernel::Kernel& kernel_;
  kernel::PackedMatrix outputs_, inputs_;  // u [rows, outputs], w [rows, inputs]
  Matrix<float> constants_;                // the last column of w, which meets the 1 of [a;1]
};

}  // namespace

std::unique_ptr<Projection> make_factored_projection(const ProjectionOptions& options,
                                                     const LayerShape& layer) {
  return std::make_unique<FactoredProjection>(options, layer);
}

}  // namespace fungi
