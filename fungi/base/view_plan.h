// SPDX-License-Identifier: Apache-2.0
// What an objective wants to look at, said in plain numbers: objectives state it, view makers obey
// it, and neither knows the other.
#pragma once

#include <cstddef>

namespace fungi {

struct ViewPlan {
  enum class Kind {
    evaluation,  // the sample as the backbone's own evaluation transform shows it: one view
    crops,       // random resized crops: `global_crops` from [global_area], then `local_crops` from
                 // [local_area]
    patches,     // overlapping square patches of the whole sample, row-major (SPEC 2.3.1)
  };
  Kind kind = Kind::evaluation;

  size_t global_crops = 2, local_crops = 10;
  float global_area[2] = {0.25f, 1.0f};
  float local_area[2] = {0.05f, 0.25f};
  bool bilinear = false;  // crops are resized with the triangle filter instead of the cubic one

  size_t patch_count = 4;   // a perfect square: the patch side is size / sqrt(patch_count)
  size_t stride_scale = 6;  // stride = floor(patch side / stride_scale)
};

}  // namespace fungi
