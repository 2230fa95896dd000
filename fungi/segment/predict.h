// SPDX-License-Identifier: Apache-2.0
// From neighbours to a segmentation (SPEC 5.10): the labels of a patch's neighbours, weighted by a
// softmax of their similarities, then brought from the grid of patches to pixels. Internal to this
// room.
#pragma once

#include <span>

#include "fungi/base/matrix.h"
#include "fungi/input/mask.h"

namespace fungi::segment {

// weights[i] = softmax(similarity / temperature), of one query's neighbours.
void attention(std::span<const double> similarity, double temperature, std::span<double> weights);

// Bilinear, sample points at the middles of cells (align_corners = false), of one number per cell.
void upsample(View<const float> grid, View<float> out);

// For each pixel the class with the largest upsampled share; of equal ones the smallest.
// shares: [grid_h * grid_w, classes].
Mask most_likely(View<const float> shares, size_t grid_h, size_t grid_w, size_t width,
                 size_t height);

}  // namespace fungi::segment
