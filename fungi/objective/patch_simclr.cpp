// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/patch_simclr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fungi {
namespace {

// Rows of logits at a time: with two thousand columns they stay in L2.
constexpr size_t kBlock = 32;
constexpr double kSelfSimilarity = -1e4;  // as in simclr.cpp

// Softmaxes of two rows differ by a factor of at most e^(2/τ): floats must hold it.
constexpr double kLowestTemperature = 0.025;

constexpr size_t kMostHeads = 1024;  // a mistyped number shall not fill the memory

// Rows of logits between unit latents and the keys they are compared with: negatives first, then
// the latents themselves.
class Logits {
 public:
  Logits(View<const float> unit, View<const float> negatives, double temperature)
      : negatives_(negatives.rows),
        count_(negatives.rows + unit.rows),
        self_(float(kSelfSimilarity / temperature)),
        scaled_(unit.rows, unit.cols),
        rows_(kBlock, count_) {
    Matrix<float> keys(count_, unit.cols);
    for (size_t k = 0; k < count_; ++k)
      std::copy_n(k < negatives_ ? negatives.row(k) : unit.row(k - negatives_), unit.cols,
                  keys.row(k));
    packed_ = kernel::pack(objective_kernel(), keys);
    transposed_ = kernel::pack(objective_kernel(), keys, true);
    for (size_t i = 0; i < unit.rows; ++i)
      for (size_t c = 0; c < unit.cols; ++c) scaled_(i, c) = float(unit(i, c) / temperature);
  }

  // Probabilities of rows first, first + 1, ... over all keys, and the rows' log-sum-exps.
  View<float> probabilities(size_t first, size_t count, float* lse) {
    const View<float> rows{rows_.data(), count, count_};
    kernel::multiply(objective_kernel(), scaled_.view().slice(first, count), packed_, nullptr, rows,
                     scratch_);
    for (size_t i = 0; i < count; ++i) rows(i, negatives_ + first + i) = self_;
    objective_kernel().softmax(count, count_, rows.data, rows.stride, lse);
    return rows;
  }

  // y = weights · keys
  void weigh(View<const float> weights, View<float> y) {
    kernel::multiply(objective_kernel(), weights, transposed_, nullptr, y, scratch_);
  }

 private:
  size_t negatives_, count_;
  float self_;
  Matrix<float> scaled_, rows_;
  kernel::PackedMatrix packed_, transposed_;
  Buffer scratch_;
};

}  // namespace

double info_nce(View<const float> latents, View<const float> negatives, double temperature,
                double denominator_temperature, View<float> gradient) {
  const size_t p = latents.rows, width = latents.cols, n = negatives.rows;
  FUNGI_ASSERT(p >= 2 && (n == 0 || negatives.cols == width) && gradient.rows == p &&
               gradient.cols == width && denominator_temperature >= kLowestTemperature);
  Matrix<float> unit(p, width), unit_negatives(n, width);
  const std::vector<double> norms = normalise_rows(latents, unit);
  if (n > 0) normalise_rows(negatives, unit_negatives);
  Logits logits(unit, unit_negatives, denominator_temperature);
  const auto for_each_block = [&](auto body) {
    for (size_t first = 0; first < p; first += kBlock) body(first, std::min(kBlock, p - first));
  };

  std::vector<float> lse(p);
  for_each_block(
      [&](size_t first, size_t count) { logits.probabilities(first, count, lse.data() + first); });

  // The positive term needs no pairs: Σ_{j≠i} ẑ_j = S - ẑ_i.
  std::vector<double> sum(width);
  for (size_t i = 0; i < p; ++i)
    for (size_t c = 0; c < width; ++c) sum[c] += unit(i, c);
  const double attraction = 1 / (temperature * double(p - 1));
  double loss = 0;
  for (size_t i = 0; i < p; ++i) {
    double others = 0;
    for (size_t c = 0; c < width; ++c) others += unit(i, c) * (sum[c] - unit(i, c));
    loss += lse[i] - attraction * others;
  }

  // Row i of P·τ_d·∂L/∂Ẑ is Σ_k p_ik n̂_k + Σ_j (p_ij + p_ji) ẑ_j less the attraction, and p_ji is
  // p_ij e^(lse_i - lse_j).
  const auto [low, high] = std::minmax_element(lse.begin(), lse.end());
  const float middle = (*low + *high) / 2;
  std::vector<float> whole(p), inverse(p);
  for (size_t i = 0; i < p; ++i) {
    whole[i] = std::exp(lse[i] - middle);
    inverse[i] = 1 / whole[i];
  }
  Matrix<float> again(kBlock, 1);
  for_each_block([&](size_t first, size_t count) {
    const View<float> weights = logits.probabilities(first, count, again.data());
    for (size_t i = 0; i < count; ++i) {
      float* positive = weights.row(i) + n;
      const float own = whole[first + i];
      for (size_t j = 0; j < p; ++j) positive[j] *= 1 + own * inverse[j];
    }
    logits.weigh(weights, gradient.slice(first, count));
  });
  const double repulsion = 1 / (double(p) * denominator_temperature),
               pull = 2 * attraction / double(p);
  for (size_t i = 0; i < p; ++i)
    for (size_t c = 0; c < width; ++c)
      gradient(i, c) = float(repulsion * gradient(i, c) - pull * (sum[c] - double(unit(i, c))));
  normalise_rows_backward(unit, norms, gradient);
  return loss / double(p);
}

void scramble_neighbours(View<const float> neighbours, size_t n, float* negative) {
  const size_t k = neighbours.rows, width = neighbours.cols;
  for (size_t e = 0; e < width; ++e)
    negative[e] = neighbours((e * k + n) / width, (e * k + n) % width);
}

void PatchSimclrParameters::visit(ParameterVisitor& visitor) {
  visitor.count("width", width, 2);
  visitor.count("heads", heads, 1);
  visitor.positive("temperature", temperature);
  visitor.positive("denominator_temperature", denominator_temperature);
  visitor.count("negatives", negatives, 0);
  visitor.count("neighbours", neighbours, 0);
  visitor.fraction("drop", drop);
  visitor.count("support", support, 1);
  visitor.flag("scrambled", scrambled);
}

PatchSimclr::PatchSimclr(const PatchSimclrParameters& parameters, size_t token_width, uint64_t seed)
    : parameters_(parameters), seed_(seed) {
  if (parameters.denominator_temperature < kLowestTemperature)
    fail(fmt::format("denominator_temperature={} is below {}: floats cannot hold such weights",
                     parameters.denominator_temperature, kLowestTemperature),
         kName, "choose a higher one; the paper has 0.07, its code 1");
  if (parameters.heads > kMostHeads)
    fail(fmt::format("heads={} is more than {}", parameters.heads, kMostHeads), kName,
         "choose fewer; four already average most of the chance out");
  if (parameters.neighbours < parameters.negatives)
    fail(fmt::format("{} negatives of each token are wanted, but {} neighbours looked for",
                     parameters.negatives, parameters.neighbours),
         kName, "raise neighbours, or lower negatives");
  if (parameters.negatives > 0 && parameters.support < parameters.neighbours)
    fail(fmt::format("{} neighbours are wanted from a support of {} tokens", parameters.neighbours,
                     parameters.support),
         kName, "raise support");
  for (size_t h = 0; h < parameters.heads; ++h)
    heads_.push_back(Head::random(Head::Form::affine, seed, kName, fmt::format("head{}", h),
                                  parameters.width, token_width));
}

Matrix<float> PatchSimclr::negatives(View<const float> support, View<const uint32_t> nearest,
                                     std::string_view picture) const {
  const size_t used = parameters_.negatives, width = support.cols;
  FUNGI_ASSERT(nearest.cols >= used);
  const RandomStream random(seed_, "patch_simclr/drop", fnv1a64(picture));
  std::vector<std::pair<size_t, size_t>> kept;  // token, neighbour
  for (size_t t = 0; t < nearest.rows; ++t)
    for (size_t n = 0; n < used; ++n)
      if (random.uniform(t * used + n) >= parameters_.drop) kept.emplace_back(t, n);
  Matrix<float> rows(kept.size(), width), block(nearest.cols, width);
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto [t, n] = kept[i];
    if (!parameters_.scrambled) {
      std::copy_n(support.row(nearest(t, n)), width, rows.row(i));
      continue;
    }
    for (size_t k = 0; k < nearest.cols; ++k)
      std::copy_n(support.row(nearest(t, k)), width, block.row(k));
    scramble_neighbours(block, n, rows.row(i));
  }
  return rows;
}

double PatchSimclr::loss_and_gradient(View<const float> tokens, View<const float> negatives,
                                      View<float> gradient) const {
  const size_t p = tokens.rows, n = negatives.rows, width = heads_[0].width();
  if (p < 2)
    fail(fmt::format("at least two tokens are needed, found {}", p), kName,
         "show the model a larger picture");
  Matrix<float> latents(p, width), negative_latents(n, width), d_latents(p, width),
      share(p, tokens.cols);
  double loss = 0;
  for (size_t h = 0; h < heads_.size(); ++h) {
    heads_[h].forward(tokens, latents);
    if (n > 0) heads_[h].forward(negatives, negative_latents);
    loss += info_nce(latents, negative_latents, parameters_.temperature,
                     parameters_.denominator_temperature, d_latents);
    heads_[h].backward(d_latents, h == 0 ? gradient : share.view());
    if (h > 0)
      for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j < tokens.cols; ++j) gradient(i, j) += share(i, j);
  }
  const float one = 1 / float(heads_.size());
  for (size_t i = 0; i < p; ++i)
    for (size_t j = 0; j < tokens.cols; ++j) gradient(i, j) *= one;
  return loss / double(heads_.size());
}

std::vector<NamedMatrix> PatchSimclr::state() const {
  std::vector<NamedMatrix> state;
  for (size_t h = 0; h < heads_.size(); ++h) heads_[h].save(fmt::format("head{}", h), state);
  return state;
}

void PatchSimclr::restore(const std::vector<NamedMatrix>& state) {
  std::vector<std::string> known;
  for (size_t h = 0; h < heads_.size(); ++h)
    for (const char* part : {"weight", "bias"}) known.push_back(fmt::format("head{}.{}", h, part));
  check_state_names(state, known, kName);
  for (size_t h = 0; h < heads_.size(); ++h)
    heads_[h].load(fmt::format("head{}", h), state, kName, parameters_.width_stated);
  for (const Head& head : heads_)
    if (head.width() != heads_[0].width())
      fail(fmt::format("heads of widths {} and {}", heads_[0].width(), head.width()), kName,
           "give all heads, of one width");
  parameters_.width = heads_[0].width();
}

}  // namespace fungi
