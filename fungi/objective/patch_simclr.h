// SPDX-License-Identifier: Apache-2.0
// SimCLR over the patches of one picture (SPEC 2.4): all of its tokens attract each other and are
// told apart from tokens of other pictures, the neighbours of its own in a support. The gradient
// with respect to each token is what sets one patch apart from the next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct PatchSimclrParameters {
  size_t width = 96;
  bool width_stated = false;           // by the user: given heads of another width are refused
  size_t heads = 1;                    // drawn one after the other; the loss is their mean
  double temperature = 0.07;           // divides the similarities of the positive term
  double denominator_temperature = 1;  // divides those inside the log-sum-exp; at least 0.025
  size_t negatives = 2;                // neighbours of each token that are used
  size_t neighbours = 2;               // that are looked for; differs from the above to scramble
  double drop = 0.5;                   // the share of the negatives that is left out by chance
  size_t support = 2048;               // tokens of other pictures among which they are looked for
  // DEVIATION: the paper's code reads the K x E numbers of a token's neighbours as if they were
  // E x K, so that its negatives are every K-th number of them in a row (SPEC 2.4).
  bool scrambled = false;

  void visit(ParameterVisitor& visitor);
};

// Loss of latents [P, D] against negatives [N, D], neither normalised (SPEC 2.3.3); overwrites
// gradient [P, D], with respect to the latents. As Simclr's, for thousands of positives: in f32, in
// blocks that stay in the cache, without a matrix of P x P.
double info_nce(View<const float> latents, View<const float> negatives, double temperature,
                double denominator_temperature, View<float> gradient);

// What the paper's code makes of the neighbours [k, width] of one token: its negative number n.
void scramble_neighbours(View<const float> neighbours, size_t n, float* negative);

// Const, and safe to share between threads.
class PatchSimclr {
 public:
  PatchSimclr(const PatchSimclrParameters& parameters, size_t token_width, uint64_t seed);

  static constexpr const char* kName = "patch_simclr";
  const PatchSimclrParameters& parameters() const { return parameters_; }

  // The rows of a support that are the negatives of a picture: `nearest` holds, for each of its
  // tokens, the rows of its neighbours, nearest first. What is dropped depends on seed and id.
  Matrix<float> negatives(View<const float> support, View<const uint32_t> nearest,
                          std::string_view picture) const;

  // Loss of the tokens [P, token_width] of a picture; overwrites gradient, of the same shape.
  double loss_and_gradient(View<const float> tokens, View<const float> negatives,
                           View<float> gradient) const;

  // Heads, "head0.weight" and so on.
  std::vector<NamedMatrix> state() const;
  void restore(const std::vector<NamedMatrix>& state);

 private:
  PatchSimclrParameters parameters_;
  uint64_t seed_;
  std::vector<Head> heads_;
};

}  // namespace fungi
