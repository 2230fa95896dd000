// SPDX-License-Identifier: Apache-2.0
// An image as an objective wants to look at it: the evaluation view, random crops, or overlapping
// patches (SPEC 3.5), each a normalised float picture [3, S, S] for the backbone. Views are written
// one at a time into the caller's buffer, so that a worker never holds all 49 of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fungi/base/view_plan.h"
#include "fungi/input/image.h"
#include "fungi/input/preprocess.h"

namespace fungi {

// Of one sample: more were not meant.
inline constexpr size_t kMostViews = size_t{1} << 16;

// How many views the plan gives at that input size. Throws Error when the plan cannot be carried
// out, or gives more than kMostViews.
size_t view_count(const ViewPlan& plan, size_t input_size);

// Seed of one sample's random views: depends on the run's seed, what the views are for, and the
// sample's id, nothing else.
uint32_t view_seed(uint64_t seed, std::string_view purpose, std::string_view sample_id);

// Makes the views of one image after another. Holds scratch memory and tables: one per thread.
// Evaluation views obey all of `preprocess`; crops and patches only its input size and statistics
// (pass the ImageNet ones to do as the references do).
class ImageViews {
 public:
  ImageViews(const ViewPlan& plan, const Preprocess& preprocess);
  ~ImageViews();
  ImageViews(ImageViews&&) noexcept;
  ImageViews& operator=(ImageViews&&) noexcept;

  size_t count() const noexcept;        // views per image
  size_t view_floats() const noexcept;  // 3 * S * S

  // Takes up an image, which must stay alive and unchanged until the next open(). `seed` matters
  // for crops only. Throws as check() (image.h) and check_proportion (resize.h).
  void open(const Image& image, uint32_t seed);
  void open(Image&&, uint32_t) = delete;
  // Writes view `index` of the open image, [3, S, S]. Any order, any number of times. Errors: no
  // open image, no such view, another size.
  void write(size_t index, std::span<float> out);

  class Maker;  // one kind of view

 private:
  std::unique_ptr<Maker> maker_;
};

}  // namespace fungi
