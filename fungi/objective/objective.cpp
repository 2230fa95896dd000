// SPDX-License-Identifier: Apache-2.0
// What an objective does when its class says nothing else.
#include "fungi/objective/objective.h"

#include <fmt/format.h>

#include "fungi/base/random.h"

namespace fungi {

void Objective::reduce_support(View<const float> embeddings, View<float> kept) const {
  FUNGI_ASSERT(embeddings.rows == kept.rows && embeddings.cols == kept.cols);
  for (size_t i = 0; i < kept.rows; ++i)
    std::copy_n(embeddings.row(i), embeddings.cols, kept.row(i));
}

void Objective::prepare(View<const float>, size_t, Pool&) {}

void Objective::restore(const std::vector<NamedMatrix>& state) {
  if (!state.empty())
    fail(fmt::format("the objective has no state, but '{}' was given", state[0].name), name());
}

std::vector<uint32_t> choose_support(size_t available, size_t wanted, uint64_t seed) {
  TorchRandom random(static_cast<uint32_t>(RandomStream(seed, "support").bits(0)));
  std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(available));
  if (order.size() > wanted) order.resize(wanted);
  return order;
}

}  // namespace fungi
