// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/tensors.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"

namespace fungi {
namespace {

void list_norm(const Architecture& a, const std::string& name, size_t size,
               std::vector<CanonicalTensor>& out) {
  out.push_back({name + ".weight", 1, size});
  if (!a.rms_norm && a.norm_bias) out.push_back({name + ".bias", 1, size});
}

void list_linear(const std::string& name, size_t rows, size_t cols, bool bias,
                 std::vector<CanonicalTensor>& out) {
  out.push_back({name + ".weight", rows, cols});
  if (bias) out.push_back({name + ".bias", 1, rows});
}

void list_pool(const Architecture& a, std::vector<CanonicalTensor>& out) {
  const size_t d = a.width;
  out.push_back({"pool.latent", 1, d});
  if (a.pool_query) list_linear("pool.q", d, d, a.pool_bias, out);
  list_linear("pool.k", d, d, a.pool_bias, out);
  list_linear("pool.v", d, d, a.pool_bias, out);
  list_linear("pool.proj", d, d, true, out);
  if (!a.pool_hidden) return;
  list_norm(a, "pool.norm", d, out);
  list_linear("pool.fc1", a.pool_hidden, d, true, out);
  list_linear("pool.fc2", d, a.pool_hidden, true, out);
}

void list_embedding(const Architecture& a, std::vector<CanonicalTensor>& out) {
  const size_t d = a.width, plain = a.prefix_tokens - a.registers;
  if (a.input == InputKind::token_ids) {
    const size_t words = a.words_width();
    out.push_back({"words", a.vocabulary, words});
    if (a.max_positions && a.position_table) {
      out.push_back({"word_positions", a.max_positions, words});
      if (a.token_types) out.push_back({"word_type", 1, words});
    }
    if (!a.word_width) return;
    out.push_back({"word_map.weight", d, words});
    out.push_back({"word_map.bias", 1, d});
    return;
  }
  if (a.convolutions) {
    out.push_back({"conv1.weight", d, a.patch_h * 3});
    out.push_back({"conv1.bias", 1, d});
    out.push_back({"conv2.weight", d, d * 3});
    out.push_back({"conv2.bias", 1, d});
  } else {
    out.push_back({"patch_embed.weight", d, a.channels * a.patch_h * a.patch_w});
    if (a.patch_bias) out.push_back({"patch_embed.bias", 1, d});
  }
  if (a.patch_norm) list_norm(a, "patch_norm", d, out);
  if (plain) out.push_back({"prefix", plain, d});
  if (plain && a.position_on_prefix) out.push_back({"pos_prefix", plain, d});
  if (a.position_table) out.push_back({"pos_patches", a.stored_grid_h * a.stored_grid_w, d});
  if (a.registers) out.push_back({"registers", a.registers, d});
  if (a.mask_token) out.push_back({"mask_token", 1, d});
}

}  // namespace

std::vector<CanonicalTensor> canonical_tensors(const Architecture& a) {
  const size_t d = a.width, inner = a.attention_width(), fc1 = a.mlp_hidden * (a.gated_mlp ? 2 : 1);
  std::vector<CanonicalTensor> out;
  const auto norm = [&](const std::string& name, size_t size) { list_norm(a, name, size, out); };
  const auto linear = [&](const std::string& name, size_t rows, size_t cols, bool bias) {
    list_linear(name, rows, cols, bias, out);
  };
  list_embedding(a, out);
  if (a.norm_pre) norm("norm_pre", a.input == InputKind::token_ids ? a.words_width() : d);
  for (size_t i = 0; i < a.stored_blocks(); ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    if (i > 0 || a.first_norm) norm(b + "norm1", d);
    linear(b + "attn.qkv", 3 * inner, d, a.qkv_bias);
    if (a.attention_norm) norm(b + "attn.norm", inner);
    linear(b + "attn.proj", d, inner, a.linear_bias);
    if (a.layer_scale) out.push_back({b + "ls1", 1, d});
    norm(b + "norm2", d);
    linear(b + "mlp.fc1", fc1, d, a.linear_bias);
    if (a.mlp_norm) norm(b + "mlp.norm", a.mlp_hidden);
    linear(b + "mlp.fc2", d, a.mlp_hidden, a.linear_bias);
    if (a.layer_scale) out.push_back({b + "ls2", 1, d});
  }
  if (a.final_norm) norm("norm", d);
  if (a.pooling == Pooling::attention) list_pool(a, out);
  if (a.head) linear("head", a.embedding_width, d, a.head_bias);
  if (a.relative_buckets) out.push_back({"relative_bias", a.relative_buckets, a.heads});
  return out;
}

size_t Architecture::parameters() const {
  size_t sum = 0;
  for (const CanonicalTensor& t : canonical_tensors(*this)) sum += t.rows * t.cols;
  return sum;
}

Matrix<float> RandomTensors::get(const CanonicalTensor& tensor) const {
  const auto& [name, rows, cols] = tensor;
  Matrix<float> out(rows, cols);
  const RandomStream random(seed_, name);
  const bool gain = rows == 1 && name.find("norm") != std::string::npos && name.ends_with("weight");
  const float scale = rows == 1 ? 0.1f : 1.0f / std::sqrt(float(cols));
  for (size_t i = 0; i < rows * cols;
       ++i) {  // uniform with unit variance: far cheaper than a normal, as good here
    const float u = float((random.uniform(i) - 0.5) * std::sqrt(12.0));
    out.data()[i] = gain ? 1.0f + 0.1f * u : scale * u;
  }
  return out;
}

Tensors::Tensors(const Architecture& architecture, const TensorSource& source) : source_(source) {
  for (CanonicalTensor& t : canonical_tensors(architecture)) listed_[t.name] = std::move(t);
}

Matrix<float> Tensors::matrix(const std::string& name) const {
  const auto listed = listed_.find(name);
  if (listed == listed_.end()) return {};
  const CanonicalTensor& wanted = listed->second;
  Matrix<float> found = source_.get(wanted);
  if (found.rows() != wanted.rows || found.cols() != wanted.cols || found.stride() != wanted.cols)
    fail(fmt::format("expected a compact matrix of {}x{}, found {}x{} with a stride of {}",
                     wanted.rows, wanted.cols, found.rows(), found.cols(), found.stride()),
         name, "a TensorSource gives every tensor in the shape it is asked for");
  return found;
}

std::vector<float> Tensors::vector(const std::string& name) const {
  const Matrix<float> m = matrix(name);
  return {m.data(), m.data() + m.rows() * m.cols()};
}

}  // namespace fungi
