// SPDX-License-Identifier: Apache-2.0
// Results of gradients of several layers, put together as curves over the depth of the network.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fungi {

struct LayerCurve {
  std::string objective, part;  // "kl", "mlp.fc2"
  std::string beside;           // the block that stands before the gradient; empty: it is alone
  std::vector<size_t> blocks;   // ascending
  std::vector<double> values;   // one of each
};

// Of features ("kl@blocks.3.mlp.fc2", "embedding+kl@blocks.3.mlp.fc2") with a value each: curves in
// the order of their first values. Other features are none of them.
std::vector<LayerCurve> layer_curves(
    const std::vector<std::pair<std::string, double>>& values_of_features);

}  // namespace fungi
