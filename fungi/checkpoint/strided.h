// SPDX-License-Identifier: Apache-2.0
// A tensor as torch and numpy see it: offset, shape and strides over a run of elements. Bounds are
// checked once, before anything is read; then the elements are gathered into row-major f32.
// Internal to this room.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fungi/checkpoint/checkpoint.h"

namespace fungi {

struct Strided {
  DType type = DType::f32;
  std::vector<size_t> shape;
  std::vector<size_t> strides;  // in elements; 0 repeats
  size_t offset = 0;            // in elements
};

// Error unless every element lies among `stored` elements. Also refuses repetition (stride 0)
// beyond reason.
void check_bounds(const Strided& tensor, size_t stored, const std::string& place);

// True when the elements lie in row-major order without gaps.
bool is_contiguous(const Strided& tensor);

// Row-major f32 of a float tensor; from points at element 0, at any alignment. Call check_bounds
// first.
void gather(const Strided& tensor, const std::byte* from, float* to);

}  // namespace fungi
