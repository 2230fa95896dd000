// SPDX-License-Identifier: Apache-2.0
// What patches of a training picture are called, and which of them are remembered (SPEC 5.10): the
// shares of the classes among a patch's pixels, and a draw that favours rare classes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/input/mask.h"

namespace fungi {

// Share of each class among the pixels of each patch, [grid_h * grid_w, classes], of a mask whose
// sides are multiples of the grid's. Ignored pixels count as class 0.
Matrix<float> patch_labels(const Mask& mask, size_t grid_h, size_t grid_w, size_t classes,
                           int ignore);

// Σ of F_c over the classes c in a patch, where F_c counts the patches of the picture that show c.
std::vector<float> patch_scores(View<const float> labels);

// How many patches of each picture fill a memory of so many rows: at least 1, at most all.
size_t patches_per_picture(size_t memory, size_t pictures, size_t epochs, size_t patches);

// The patches of the `keep` smallest score · uniform, smallest first; equal ones by their number.
// uniform: one number in [0, 1) per patch. All patches in order where all are kept.
std::vector<uint32_t> sample_patches(View<const float> labels, std::span<const float> uniform,
                                     size_t keep);

}  // namespace fungi
