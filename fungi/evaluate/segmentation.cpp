// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/segmentation.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/evaluate/hungarian.h"

namespace fungi {

void Confusion::add(const Mask& truth, const Mask& predicted, int ignore,
                    std::optional<uint8_t> unmeasured) {
  if (truth.width != predicted.width || truth.height != predicted.height)
    fail(fmt::format("expected a prediction of {}x{} pixels, found {}x{}", truth.width,
                     truth.height, predicted.width, predicted.height),
         "confusion", "resize it, or the truth");
  for (size_t p = 0; p < truth.values.size(); ++p) {
    const uint8_t is = truth.values[p];
    if (is == ignore || (unmeasured && is == *unmeasured)) continue;
    add(is, predicted.values[p], 1);
  }
}

void Confusion::add(size_t truth, size_t predicted, uint64_t pixels) {
  if (truth >= classes() || predicted >= classes())
    fail(fmt::format("expected classes of 0 to {}, found {} for {}", classes() - 1, predicted,
                     truth),
         "confusion", "state the number of classes, and what is to be ignored");
  counts_(truth, predicted) += pixels;
}

void Confusion::add(const Confusion& other) {
  FUNGI_ASSERT(other.classes() == classes());
  for (size_t t = 0; t < classes(); ++t)
    for (size_t p = 0; p < classes(); ++p) counts_(t, p) += other.counts_(t, p);
}

SegmentationScore score(const Confusion& confusion, std::optional<uint8_t> unmeasured) {
  const size_t n = confusion.classes();
  SegmentationScore out;
  out.pixels.resize(n);
  std::vector<uint64_t> predicted(n, 0);
  uint64_t all = 0, right = 0;
  for (size_t t = 0; t < n; ++t)
    for (size_t p = 0; p < n; ++p) {
      out.pixels[t] += confusion(t, p);
      predicted[p] += confusion(t, p);
      all += confusion(t, p);
      right += t == p ? confusion(t, p) : 0;
    }
  Matrix<double> iou(n, n);
  for (size_t t = 0; t < n; ++t)
    for (size_t p = 0; p < n; ++p)
      if (const uint64_t both = confusion(t, p))
        iou(t, p) = double(both) / double(out.pixels[t] + predicted[p] - both);
  out.renamed = best_assignment(iou);
  size_t measured = 0, present = 0;
  for (size_t c = 0; c < n; ++c) {
    out.iou.push_back(iou(c, c));
    if (unmeasured && c == *unmeasured) continue;
    ++measured;
    out.miou += iou(c, c);
    out.hungarian += iou(c, out.renamed[c]);
    if (out.pixels[c] == 0) continue;
    ++present;
    out.present += iou(c, c);
  }
  if (measured) out.miou /= double(measured), out.hungarian /= double(measured);
  if (present) out.present /= double(present);
  if (all) out.pixel_accuracy = double(right) / double(all);
  return out;
}

}  // namespace fungi
