// SPDX-License-Identifier: Apache-2.0
// How good a segmentation is (SPEC 5.10): pixels are counted by true and predicted class, and the
// counts become intersections over unions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/input/mask.h"

namespace fungi {

// Pixels by true class (rows) and predicted class (columns).
class Confusion {
 public:
  explicit Confusion(size_t classes) : counts_(classes, classes) {}
  // Pixels whose true value is `ignore` or `unmeasured` are left out. Error where the sizes differ
  // or a value is no class.
  void add(const Mask& truth, const Mask& predicted, int ignore,
           std::optional<uint8_t> unmeasured = {});
  void add(size_t truth, size_t predicted, uint64_t pixels);
  void add(const Confusion& other);
  size_t classes() const { return counts_.rows(); }
  uint64_t operator()(size_t truth, size_t predicted) const { return counts_(truth, predicted); }

 private:
  Matrix<uint64_t> counts_;
};

struct SegmentationScore {
  double miou = 0;               // over all classes; one that occurs nowhere counts 0
  double present = 0;            // over the classes of the truth
  double hungarian = 0;          // over all classes, predicted ones renamed so that it is largest
  double pixel_accuracy = 0;     // share of the pixels that were counted
  std::vector<double> iou;       // of each class; 0 where there is nothing
  std::vector<uint64_t> pixels;  // of the truth, of each class
  std::vector<size_t> renamed;   // the predicted class that stands for each true one
};

// unmeasured: a class that is in no mean.
SegmentationScore score(const Confusion& confusion, std::optional<uint8_t> unmeasured = {});

}  // namespace fungi
