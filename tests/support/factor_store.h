// SPDX-License-Identifier: Apache-2.0
// Stores with kept factors of made-up gradients, and those gradients formed plainly in double
// precision.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "fungi/base/random.h"
#include "fungi/feature/settings.h"
#include "fungi/projection/projection.h"
#include "fungi/store/writer.h"

namespace fungi::test {

// A layer attn.proj of 2 heads: outputs 6, inputs 10.
inline constexpr size_t kOutputs = 6, kInputs = 10, kEmbedding = 9;

struct MadeGradient {
  std::string name;
  size_t terms;
  double scale = 1;  // of b: gradients may be very small
};
// Few terms: factors are multiplied. Many: gradients are formed.
inline const std::vector<MadeGradient> kGradients = {
    {"kl", 1, 1e-30}, {"dino", 2, 1}, {"simclr", 7, 1e3}};

struct MadeSample {
  std::vector<float> embedding;
  std::vector<Matrix<float>> b, a;  // by gradient; zero terms at the end
};

// Sample i of a data set. Every fifth has a zero KL gradient, every third fewer SimCLR terms than
// there is room for.
inline MadeSample made_sample(size_t seed, size_t i) {
  const RandomStream random(seed, "factor store", i);
  size_t at = 0;
  const auto draw = [&](double scale) { return float(scale * (2 * random.uniform(at++) - 1)); };
  MadeSample s;
  for (size_t j = 0; j < kEmbedding; ++j) s.embedding.push_back(draw(3));
  for (const MadeGradient& g : kGradients) {
    Matrix<float> b(g.terms, kOutputs), a(g.terms, kInputs);
    size_t used = g.terms;
    if (g.name == "kl" && i % 5 == 4) used = 0;
    if (g.name == "simclr" && i % 3 == 2) used = 3;
    for (size_t v = 0; v < used; ++v) {
      for (size_t j = 0; j < kOutputs; ++j) b(v, j) = draw(g.scale);
      for (size_t j = 0; j < kInputs; ++j) a(v, j) = draw(1) + 0.3f;
    }
    s.b.push_back(std::move(b));
    s.a.push_back(std::move(a));
  }
  return s;
}

inline void write_factor_store(const std::filesystem::path& folder, size_t n, size_t seed,
                               StoreType type = StoreType::float32, size_t shard = 7) {
  StoreSpec spec;
  Settings settings;
  for (const MadeGradient& g : kGradients) settings.objectives.push_back({g.name, {}});
  settings.gradient = {"blocks.1.attn.proj", false, {kOutputs, kInputs, true}, {.rows = 4}};
  write_settings(settings, spec);
  spec.type = type;
  spec.blocks = {{"embedding", kEmbedding}};
  for (const MadeGradient& g : kGradients) spec.blocks.push_back({g.name, 4});
  for (const MadeGradient& g : kGradients) {
    spec.blocks.push_back({g.name + "_factors_b", kOutputs, g.terms});
    spec.blocks.push_back({g.name + "_factors_a", kInputs, g.terms});
  }
  StoreWriter writer(folder, spec, {.shard_size = shard});
  std::vector<StoreSample> samples;
  for (size_t i = 0; i < n; ++i) samples.push_back({"sample-" + std::to_string(i), int64_t(i % 3)});
  for (const StoreWork& work : writer.plan(samples, {"x", "y", "z"})) {
    StoreRows rows;
    for (const StoreBlock& block : spec.blocks)
      rows.blocks.emplace_back(work.samples.size(), block.size());
    for (size_t p = 0; p < work.samples.size(); ++p) {
      const MadeSample s = made_sample(seed, work.samples[p]);
      std::copy(s.embedding.begin(), s.embedding.end(), rows.blocks[0].row(p));
      for (size_t g = 0; g < kGradients.size(); ++g) {
        std::copy_n(s.b[g].data(), s.b[g].rows() * kOutputs, rows.blocks[4 + 2 * g].row(p));
        std::copy_n(s.a[g].data(), s.a[g].rows() * kInputs, rows.blocks[5 + 2 * g].row(p));
      }
    }
    writer.put(work, rows);
  }
  writer.finish();
}

// vec(Σ b ⊗ [a;1]), as it stands in the formula.
inline std::vector<double> dense_gradient(const Matrix<float>& b, const Matrix<float>& a,
                                          bool bias = true) {
  std::vector<double> g(b.cols() * (a.cols() + bias), 0.0);
  for (size_t v = 0; v < b.rows(); ++v)
    for (size_t i = 0; i < b.cols(); ++i)
      for (size_t j = 0; j < a.cols() + bias; ++j)
        g[i * (a.cols() + bias) + j] += double(b(v, i)) * (j < a.cols() ? double(a(v, j)) : 1.0);
  return g;
}

inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

inline std::vector<double> unit(std::vector<double> x) {
  const double norm = std::sqrt(dot(x, x));
  for (double& v : x) v = norm > 0 ? v / norm : 0;
  return x;
}

// Unit blocks side by side: what a projection of endless width would be compared by.
inline std::vector<double> limit_row(const MadeSample& s, bool embedding,
                                     const std::vector<size_t>& gradients) {
  std::vector<double> row;
  if (embedding) row = unit({s.embedding.begin(), s.embedding.end()});
  for (size_t g : gradients) {
    const std::vector<double> part = unit(dense_gradient(s.b[g], s.a[g]));
    row.insert(row.end(), part.begin(), part.end());
  }
  return row;
}

}  // namespace fungi::test
