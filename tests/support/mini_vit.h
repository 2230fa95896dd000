// SPDX-License-Identifier: Apache-2.0
// The mini ViT of SPEC 7.3, drawn number by number, and a plain reference of it on any scalar:
// double for the printed digits, complex<double> for exact derivatives.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"

namespace fungi::mini {

using Vector = std::vector<double>;

struct Block {
  Vector gamma1, beta1, qkv, qkv_bias, proj, proj_bias, gamma2, beta2, fc1, fc1_bias, fc2, fc2_bias;
};

struct Head {
  Vector weight, bias;
};

struct Model {
  static constexpr size_t d = 8, heads = 2, hidden = 16, tokens = 5, patch_size = 48;
  Vector patch, patch_bias, cls, pos;
  Block blocks[2];
  Vector gamma, beta;
  std::vector<Vector> images;  // three images, then two negatives; 3×8×8
  Head kl, student, teacher, simclr;

  Model() {
    TorchRandom random(123);
    auto vec = [&](size_t n, double scale, double offset = 0) {
      Vector v(n);
      for (double& x : v) x = offset + (double(random.uniform()) - 0.5) * scale;
      return v;
    };
    patch = vec(d * patch_size, 0.5), patch_bias = vec(d, 0.5), cls = vec(d, 1),
    pos = vec(tokens * d, 1);
    for (Block& b : blocks) {
      b.gamma1 = vec(d, 0.25, 1), b.beta1 = vec(d, 0.25);
      b.qkv = vec(3 * d * d, 1), b.qkv_bias = vec(3 * d, 0.5);
      b.proj = vec(d * d, 1), b.proj_bias = vec(d, 0.5);
      b.gamma2 = vec(d, 0.25, 1), b.beta2 = vec(d, 0.25);
      b.fc1 = vec(hidden * d, 1), b.fc1_bias = vec(hidden, 0.5);
      b.fc2 = vec(d * hidden, 1), b.fc2_bias = vec(d, 0.5);
    }
    gamma = vec(d, 0.25, 1), beta = vec(d, 0.25);
    for (int i = 0; i < 5; ++i) images.push_back(vec(3 * 64, 4));
    auto head = [&](size_t rows) {
      const double scale = 2 / std::sqrt(8.0);
      return Head{vec(rows * d, scale), vec(rows, scale)};
    };
    kl = head(6), student = head(5), teacher = head(5), simclr = head(4);
  }
};

inline double erf_of(double x) { return std::erf(x); }
inline std::complex<double> erf_of(
    std::complex<double> x) {  // first order in the imaginary part: all a complex step needs
  return {std::erf(x.real()),
          x.imag() * 2 / std::sqrt(3.14159265358979323846) * std::exp(-x.real() * x.real())};
}

template <class T>
using Rows = std::vector<std::vector<T>>;

template <class T>
std::vector<T> affine(const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b) {
  std::vector<T> y(b);
  for (size_t i = 0; i < b.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j) y[i] += w[i * x.size() + j] * x[j];
  return y;
}

template <class T>
std::vector<T> widen(const Vector& v) {
  return {v.begin(), v.end()};
}

template <class T>
std::vector<T> layer_norm(const std::vector<T>& x, const Vector& gamma, const Vector& beta) {
  T mean = 0, variance = 0;
  for (const T& v : x) mean += v / double(x.size());
  for (const T& v : x) variance += (v - mean) * (v - mean) / double(x.size());
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) / std::sqrt(variance + 1e-6) * gamma[i] + beta[i];
  return y;
}

// One block on all tokens; proj and proj_bias are given so that their derivatives can be probed.
// context: the class token's.
template <class T>
Rows<T> block(const Rows<T>& x, const Block& b, const std::vector<T>& proj,
              const std::vector<T>& proj_bias, std::vector<T>* context) {
  const size_t d = Model::d, dim = d / Model::heads, t = x.size();
  Rows<T> qkv, out;
  for (const auto& row : x)
    qkv.push_back(
        affine(layer_norm(row, b.gamma1, b.beta1), widen<T>(b.qkv), widen<T>(b.qkv_bias)));
  for (size_t i = 0; i < t; ++i) {
    std::vector<T> c(d, T(0));
    for (size_t h = 0; h < Model::heads; ++h) {
      std::vector<T> p(t);
      T sum = 0;
      for (size_t j = 0; j < t; ++j) {
        T s = 0;
        for (size_t k = 0; k < dim; ++k) s += qkv[i][h * dim + k] * qkv[j][d + h * dim + k];
        sum += p[j] = std::exp(s / std::sqrt(double(dim)));
      }
      for (size_t j = 0; j < t; ++j)
        for (size_t k = 0; k < dim; ++k) c[h * dim + k] += p[j] / sum * qkv[j][2 * d + h * dim + k];
    }
    if (i == 0 && context) *context = c;
    std::vector<T> y = affine(c, proj, proj_bias);
    for (size_t k = 0; k < d; ++k) y[k] += x[i][k];
    std::vector<T> u =
        affine(layer_norm(y, b.gamma2, b.beta2), widen<T>(b.fc1), widen<T>(b.fc1_bias));
    for (T& v : u) v = 0.5 * v * (1.0 + erf_of(v / std::sqrt(2.0)));
    const std::vector<T> m = affine(u, widen<T>(b.fc2), widen<T>(b.fc2_bias));
    for (size_t k = 0; k < d; ++k) y[k] += m[k];
    out.push_back(y);
  }
  return out;
}

// Patches that the model does not see: `token` (nothing: zeros) stands for them.
struct Hidden {
  std::vector<uint8_t> patches = std::vector<uint8_t>(Model::tokens - 1, 0);
  Vector token = {};
};

// All final-norm tokens; `proj`/`proj_bias` replace those of the last block.
template <class T>
Rows<T> run(const Model& m, const Vector& image, const std::vector<T>& proj,
            const std::vector<T>& proj_bias, std::vector<T>* context = nullptr,
            const Hidden& hidden = {}) {
  Rows<T> x{widen<T>(m.cls)};
  for (size_t p = 0; p < 4; ++p) {
    std::vector<T> pixels;
    for (size_t c = 0; c < 3; ++c)
      for (size_t y = 0; y < 4; ++y)
        for (size_t k = 0; k < 4; ++k)
          pixels.push_back(image[c * 64 + (p / 2 * 4 + y) * 8 + p % 2 * 4 + k]);
    if (!hidden.patches[p])
      x.push_back(affine(pixels, widen<T>(m.patch), widen<T>(m.patch_bias)));
    else
      x.push_back(hidden.token.empty() ? std::vector<T>(Model::d, T(0)) : widen<T>(hidden.token));
  }
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < Model::d; ++k) x[i][k] += m.pos[i * Model::d + k];
  x = block<T>(x, m.blocks[0], widen<T>(m.blocks[0].proj), widen<T>(m.blocks[0].proj_bias),
               nullptr);
  x = block<T>(x, m.blocks[1], proj, proj_bias, context);
  for (auto& row : x) row = layer_norm(row, m.gamma, m.beta);
  return x;
}

// The same model as weights for the encoder.
class Tensors : public TensorSource {
 public:
  explicit Tensors(const Model& m, const Vector& mask_token = {}) {
    all_ = {{"patch_embed.weight", m.patch},
            {"patch_embed.bias", m.patch_bias},
            {"prefix", m.cls},
            {"norm.weight", m.gamma},
            {"norm.bias", m.beta}};
    if (!mask_token.empty()) all_["mask_token"] = mask_token;
    all_["pos_prefix"] = {m.pos.begin(), m.pos.begin() + 8};
    all_["pos_patches"] = {m.pos.begin() + 8, m.pos.end()};
    for (int i = 0; i < 2; ++i) {
      const Block& b = m.blocks[i];
      const std::string p = "blocks." + std::to_string(i) + ".";
      all_[p + "norm1.weight"] = b.gamma1, all_[p + "norm1.bias"] = b.beta1,
               all_[p + "norm2.weight"] = b.gamma2, all_[p + "norm2.bias"] = b.beta2;
      all_[p + "attn.qkv.weight"] = b.qkv, all_[p + "attn.qkv.bias"] = b.qkv_bias,
               all_[p + "attn.proj.weight"] = b.proj, all_[p + "attn.proj.bias"] = b.proj_bias;
      all_[p + "mlp.fc1.weight"] = b.fc1, all_[p + "mlp.fc1.bias"] = b.fc1_bias,
               all_[p + "mlp.fc2.weight"] = b.fc2, all_[p + "mlp.fc2.bias"] = b.fc2_bias;
    }
  }
  Matrix<float> get(const CanonicalTensor& tensor) const override {
    const Vector& v = all_.at(tensor.name);
    FUNGI_ASSERT(v.size() == tensor.rows * tensor.cols);
    Matrix<float> out(tensor.rows, tensor.cols);
    for (size_t i = 0; i < v.size(); ++i) out.data()[i] = float(v[i]);
    return out;
  }

 private:
  std::map<std::string, Vector> all_;
};

inline Architecture architecture() {
  Architecture a;
  a.width = a.embedding_width = 8, a.depth = 2, a.heads = 2, a.head_dim = 4, a.mlp_hidden = 16;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = 4, a.input_h = a.input_w = 8;
  a.stored_grid_h = a.stored_grid_w = 2;
  return a;
}

}  // namespace fungi::mini
