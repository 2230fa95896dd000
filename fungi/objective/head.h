// SPDX-License-Identifier: Apache-2.0
// The random, never trained linear head of an objective, z = W x + c, the L2 normaliser that may
// stand before or after it, and the gradients of both (SPEC 2.0). Products run in f32 on the
// machine's kernels, norms in f64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/random.h"
#include "fungi/base/unit_rows.h"
#include "fungi/kernel/kernel.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

class Head {
 public:
  enum class Form {
    affine,         // W x + c
    weight_normed,  // (v_r / |v_r|) x: bias-free, each row of unit length
    none,           // x itself
  };

  Head() = default;
  // weight [width, inputs]; bias [1, width], empty for a weight-normed head.
  Head(Form form, Matrix<float> weight, Matrix<float> bias);

  // Drawn as torch initialises an affine layer: U(-1/√inputs, 1/√inputs), the weight row by row,
  // then the bias.
  static Head draw(Form form, TorchRandom& random, size_t width, size_t inputs);
  // No head at all: latents are what it is given.
  static Head none(size_t inputs);
  // The same from a generator whose seed follows from (seed, objective, role).
  static Head random(Form form, uint64_t seed, std::string_view objective, std::string_view role,
                     size_t width, size_t inputs);

  size_t width() const { return form_ == Form::none ? inputs_ : weight_.rows(); }
  size_t inputs() const { return form_ == Form::none ? inputs_ : weight_.cols(); }

  // [n, inputs] → [n, width], and the gradient the other way; both overwrite.
  void forward(View<const float> x, View<float> z) const;
  void backward(View<const float> d_z, View<float> d_x) const;

  // As stored with a run: "<prefix>.weight" and, for an affine head, "<prefix>.bias".
  void save(const std::string& prefix, std::vector<NamedMatrix>& state) const;
  // Replaces the head when `state` holds it; its inputs may not change, and its width only unless
  // `keep_width`. True when replaced.
  bool load(const std::string& prefix, const std::vector<NamedMatrix>& state,
            const std::string& objective, bool keep_width = false);

 private:
  Form form_ = Form::affine;
  size_t inputs_ = 0;  // where there is no weight that tells
  Matrix<float> weight_, bias_;
  kernel::PackedMatrix packed_, packed_transposed_;
};

// What an objective makes of an embedding before its loss: the paper's ablation of heads (SPEC
// 6.10).
struct LatentParameters {
  bool normalise = true;  // the embedding has length 1 before the head
  bool head = true;       // false: there is none

  // `normalises`: whether that is usual, and so left out of manifests. `width`: of the head.
  void visit(ParameterVisitor& visitor, bool normalises, size_t& width);
  // A head drawn by Head::random(), or none.
  Head draw_head(uint64_t seed, std::string_view objective, std::string_view role, size_t width,
                 size_t inputs) const;
};

// Embeddings [n, d] as a head reads them, and the gradient the other way, in place.
class HeadInput {
 public:
  HeadInput(View<const float> embeddings, bool normalise);
  View<const float> rows() const { return rows_; }
  void backward(View<float> gradient) const;

 private:
  Matrix<float> unit_;  // empty where they stay as they are
  std::vector<double> norms_;
  View<const float> rows_;
};

// y = x · Wᵀ (+ bias) on this machine's f32 kernels, for any strides; scratch comes from the heap.
void multiply(View<const float> x, const kernel::PackedMatrix& w, const float* bias, View<float> y);

// The f32 table in use here.
const kernel::Kernel& objective_kernel();

// The backward of normalise_rows(), in place: gradient with respect to unit → gradient with respect
// to x, (γ - û (û·γ)) / |x|; zero where |x| = 0.
void normalise_rows_backward(View<const float> unit, const std::vector<double>& norms,
                             View<float> gradient);

// The matrix of that name, or null.
const Matrix<float>* find_state(const std::vector<NamedMatrix>& state, std::string_view name);

// Error when `state` holds a name that is not in `known`; it shows names as a store has them and
// ExtractorOptions::given takes them, "kl-head-weight".
void check_state_names(const std::vector<NamedMatrix>& state, const std::vector<std::string>& known,
                       const std::string& objective);

}  // namespace fungi
