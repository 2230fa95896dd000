// SPDX-License-Identifier: Apache-2.0
// Random projections of the gradient of one linear layer, y = s · R · vec([G | γ]) (SPEC 1.2, 1.5).
// A gradient comes as thin factors and is formed only in pieces; R is held as floats only when the
// user gave it so. Const after construction, safe to share.
//
// y of a sample is the same to the last bit whatever other samples are projected with it and
// however many threads help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

enum class ProjectionKind {
  // ±1 from the counter-based generator: nothing stored.
  sign,
  // ±1 from mt19937(seed), the matrix of the authors' experiments bit for bit: one bit stored each.
  sign_reference,
  // N(0,1) in 65536 equally likely steps.
  gaussian,
  // ±√3 with probability 1/6 each, otherwise 0.
  sparse,
  // Row r is u_r ⊗ w_r with signs u, w: y_r = s Σ (u_r·b)(w_r·[a;1]). Never looks at a whole M:
  // H·K / (V·(H + K)) times cheaper for an H x K layer and V factors.
  factored,
  // The user's own [rows, columns], with scale 1.
  matrix,
  // y = vec([G | γ]) itself.
  none,
};
const char* to_string(ProjectionKind kind);
std::vector<std::string> projection_names();
ProjectionKind parse_projection(std::string_view name);  // throws Error naming the choices

// The layer whose gradient is projected: weight [outputs, inputs] and, perhaps, a bias.
struct LayerShape {
  size_t outputs = 0, inputs = 0;
  bool bias = true;
  size_t row_length() const { return inputs + (bias ? 1 : 0); }
  size_t gradient_length() const { return outputs * row_length(); }
  bool operator==(const LayerShape&) const = default;
};

struct ProjectionOptions {
  ProjectionKind kind = ProjectionKind::sign;
  size_t rows = 0;       // length of y; ignored by `matrix` and `none`
  uint64_t seed = 42;    // sign_reference takes its low 32 bits
  Matrix<float> matrix;  // for ProjectionKind::matrix alone, [rows, gradient_length]
  // Products of the dense kinds. In bf16 each entry of a gradient is rounded to bf16, as the
  // operands of a network's products are. `matrix` always takes f32.
  Precision precision = Precision::f32;
};

// What suits a run whose network computes in `run`: bf16 where the run is not in f32 and this machine
// multiplies bf16 faster.
Precision projection_precision(Precision run);

// The gradient of ONE sample as G = Σ_i b_i ⊗ a_i, γ = Σ_i b_i over its views and tokens.
struct GradientFactors {
  View<const float> b;  // [views · tokens, outputs]
  View<const float> a;  // [views · tokens, inputs]
};

class Projection {
 public:
  static std::unique_ptr<Projection> make(ProjectionOptions options, const LayerShape& layer);
  virtual ~Projection() = default;

  ProjectionKind kind() const { return kind_; }
  const LayerShape& layer() const { return layer_; }
  size_t rows() const { return rows_; }  // length of y
  uint64_t seed() const { return seed_; }
  const std::string& matrix_sha256() const { return matrix_sha256_; }  // of the user's; else empty

  // y [samples, rows], not normalised. Dense kinds pass over R once per 128 samples: give many at a
  // time.
  void project(std::span<const GradientFactors> samples, View<float> y, Pool& pool) const;

  // The same where every sample has a single pair, b [samples, outputs] and a [samples, inputs]:
  // dense kinds then pass over R once for all of them and never form a gradient, so y may differ
  // from that of project() in its last bits. With Precision::bf16, a should hold bf16 numbers, as
  // what a layer of such a network reads does: others are rounded to them.
  void project_pairs(View<const float> b, View<const float> a, Precision precision, View<float> y,
                     Pool& pool) const;

 protected:
  Projection(const ProjectionOptions& options, const LayerShape& layer, size_t rows);

  // Splits the work into pieces that may run at once; each writes its own part of y.
  struct Piece {
    size_t first_sample, samples, first_row, rows;
  };
  virtual std::vector<Piece> split(size_t samples, unsigned threads) const = 0;
  virtual void run(std::span<const GradientFactors> samples, const Piece& piece,
                   View<float> y) const = 0;
  virtual void run_pairs(View<const float> b, View<const float> a, Precision precision,
                         View<float> y, Pool& pool) const;

 private:
  ProjectionKind kind_;
  LayerShape layer_;
  size_t rows_;
  uint64_t seed_;
  std::string matrix_sha256_;
};

// y / |y| in place, with the norm in f64 and no floor, and returns that norm. A zero vector stays
// zero and a vector with NaN or infinity stays as it is: the caller sees 0 or a number that is not
// finite. Divides, where normalise_rows() multiplies by the inverse, which may round otherwise:
// the gradients in stores have these bits.
double normalise(std::span<float> y);

}  // namespace fungi
