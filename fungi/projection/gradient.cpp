// SPDX-License-Identifier: Apache-2.0
// Also the projection that does not project: vec(M) as it is.
#include "fungi/projection/gradient.h"

#include <algorithm>

#include "fungi/projection/kinds.h"

namespace fungi {

GradientRows::GradientRows(const GradientFactors& factors, const LayerShape& layer)
    : kernel_(kernel::kernel_for(best_isa(), Precision::f32)),
      factors_(factors),
      layer_(layer),
      inputs_(kernel::pack(kernel_, factors.a, true)) {}

void GradientRows::form(size_t first, size_t count, float* out) const {
  const size_t terms = factors_.b.rows;
  Matrix<float> b(count, terms, round_up(std::max<size_t>(terms, 1), kernel_.k_multiple));
  for (size_t v = 0; v < terms; ++v)
    for (size_t i = 0; i < count; ++i) b(i, v) = factors_.b(v, first + i);
  Buffer scratch(kernel_.gemm_scratch(count, inputs_.n, inputs_.k));
  kernel::Epilogue epilogue;
  epilogue.out = out;
  epilogue.out_stride = layer_.row_length();
  kernel_.gemm(count, b.data(), b.stride(), inputs_, epilogue, scratch.data());
  if (!layer_.bias) return;
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (size_t v = 0; v < terms; ++v) sum += b(i, v);
    out[i * layer_.row_length() + layer_.inputs] = static_cast<float>(sum);
  }
}

namespace {

class Unprojected final : public Projection {
 public:
  Unprojected(const ProjectionOptions& options, const LayerShape& shape)
      : Projection(options, shape, shape.gradient_length()) {}

 private:
  std::vector<Piece> split(size_t samples, unsigned) const override {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < samples; ++i) pieces.push_back({i, 1, 0, rows()});
    return pieces;
  }
  void run(std::span<const GradientFactors> samples, const Piece& piece,
           View<float> y) const override {
    GradientRows(samples[piece.first_sample], layer())
        .form(0, layer().outputs, y.row(piece.first_sample));
  }
};

}  // namespace

std::unique_ptr<Projection> make_unprojected(const ProjectionOptions& options,
                                             const LayerShape& layer) {
  return std::make_unique<Unprojected>(options, layer);
}

}  // namespace fungi
