// SPDX-License-Identifier: Apache-2.0
// How to tell that two stores, or a store and a run, mean the same features.
#pragma once

#include <string>
#include <vector>

#include "fungi/store/manifest.h"

namespace fungi {

// Error naming the first setting in which `found` (this run) differs from `expected` (what the
// store at `place` holds). What only explains them may differ; and a store that lacks pictures that
// are cut off may begin to take them, since whole files give the same rows.
void require_same_features(const StoreSpec& expected, const StoreSpec& found,
                           const std::string& place, const std::string& hint);

// Error unless rows of these blocks mean the same in both stores: the same model, precision and
// preprocessing, and for gradients the same objective, state (heads, negatives), layer and, where
// they are compared as they are stored, projection. What only other blocks depend on may differ.
void require_comparable(const StoreManifest& expected, const StoreManifest& found,
                        const std::vector<std::string>& blocks, bool projected,
                        const std::string& place, const std::string& hint);

}  // namespace fungi
