// SPDX-License-Identifier: Apache-2.0
// A sample as an objective wants to look at it. Views are written one at a time into the caller's
// buffer, so that a worker never holds all 49 of them. Each kind of sample has one ViewMaker; of
// images: the evaluation view, random crops, or overlapping patches (SPEC 3.5), each a normalised
// float picture [3, S, S] for the backbone, where S is its input size or less (view_side()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fungi/base/inputs.h"
#include "fungi/base/view_plan.h"
#include "fungi/input/preprocess.h"
#include "fungi/input/sample.h"

namespace fungi {

// Of one sample: more were not meant.
inline constexpr size_t kMostViews = size_t{1} << 16;

// Makes the views of one sample after another. Holds scratch memory and tables: one per thread.
class ViewMaker {
 public:
  virtual ~ViewMaker() = default;
  // Takes up a sample, which must stay alive and unchanged until the next open(). `seed` decides
  // about random views (view_seed). Error where it cannot be viewed.
  virtual void open(const Sample& sample, uint32_t seed) = 0;
  // Adds one view of the open sample to the batch: any one, any number of times, always the same.
  virtual void write(size_t view, InputBuffer& out) = 0;
  // The first view of the open sample that is the same as this one: it is computed once, and counts
  // as often as it occurs.
  virtual size_t same_as(size_t view) const { return view; }
  // Of each token that write() writes the word that is hidden there, -1 where none is; empty where
  // the view hides none. Until the next open().
  virtual std::span<const int32_t> hidden_words([[maybe_unused]] size_t view) const { return {}; }
  // Whether the open sample is longer than what the model can look at.
  virtual bool cut() const { return false; }
  // Whether it had to be brought to the rate that the model wants.
  virtual bool resampled() const { return false; }
};

// How many views of an image the plan gives at that input size. Throws Error when the plan is none
// of images, cannot be carried out, or gives more than kMostViews.
size_t image_view_count(const ViewPlan& plan, size_t input_size);

// Seed of one sample's random views: depends on the run's seed, what the views are for, and the
// sample's id, nothing else.
uint32_t view_seed(uint64_t seed, std::string_view purpose, std::string_view sample_id);

// Evaluation views obey all of `preprocess`; crops and patches only its input size and statistics
// (pass the ImageNet ones to do as the references do).
class ImageViews final : public ViewMaker {
 public:
  ImageViews(const ViewPlan& plan, const Preprocess& preprocess);
  ~ImageViews() override;
  ImageViews(ImageViews&&) noexcept;
  ImageViews& operator=(ImageViews&&) noexcept;

  size_t count() const noexcept;        // views per image
  size_t view_floats(size_t view = 0) const noexcept;  // 3 * S * S

  // Throws as image_of (sample.h), check() (image.h) and check_proportion (resize.h).
  void open(const Sample& sample, uint32_t seed) override;
  void write(size_t view, InputBuffer& out) override;

  // The same without a Sample and an InputBuffer. Errors: no open image, no such view, another
  // size.
  void open(const Image& image, uint32_t seed);
  void open(Image&&, uint32_t) = delete;
  void write(size_t view, std::span<float> out);

  class Maker;  // one kind of view

 private:
  ViewPlan plan_;
  size_t input_size_ = 0;
  std::unique_ptr<Maker> maker_;
};

}  // namespace fungi
