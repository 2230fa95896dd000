// SPDX-License-Identifier: Apache-2.0
// Features of patches as colours: their first three principal components, found from rows of a
// memory, become red, green and blue. Patches that are alike have like colours, in all pictures.
#pragma once

#include <array>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/input/image.h"
#include "fungi/pca/pca.h"

namespace fungi {

class PatchColours {
 public:
  // From some of the rows, spread over all of them. Error where there are fewer than four rows or
  // columns, or all are the same.
  static PatchColours fit(View<const float> rows, Pool& pool);
  // One pixel per patch.
  Image picture(View<const float> rows, size_t grid_h, size_t grid_w, Pool& pool) const;
  // The same brought to a size by Pillow's bilinear filter.
  Image picture(View<const float> rows, size_t grid_h, size_t grid_w, size_t width, size_t height,
                Pool& pool) const;

 private:
  Pca pca_;
  std::array<float, 3> low_{}, high_{};  // of each component: what becomes 0 and 255
};

}  // namespace fungi
