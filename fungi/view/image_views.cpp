// SPDX-License-Identifier: Apache-2.0
// One maker per kind of view (evaluation, crops, patches) behind ImageViews.
#include <fmt/format.h>

#include <vector>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/view/augmentation.h"
#include "fungi/view/crop.h"
#include "fungi/view/patches.h"
#include "fungi/view/view.h"

namespace fungi {

class ImageViews::Maker {
 public:
  virtual ~Maker() = default;
  virtual void open(const Image& image, uint32_t seed) = 0;
  virtual void write(size_t index, std::span<float> out) = 0;
  size_t count = 1;
  bool is_open = false;
};

namespace {

class EvaluationMaker final : public ImageViews::Maker {
 public:
  explicit EvaluationMaker(const Preprocess& preprocess) : preprocessor_(preprocess) {}
  void open(const Image& image, uint32_t) override { image_ = &image; }
  void write(size_t, std::span<float> out) override { preprocessor_.apply(*image_, out); }

 private:
  Preprocessor preprocessor_;
  const Image* image_ = nullptr;
};

class CropMaker final : public ImageViews::Maker {
 public:
  CropMaker(const ImageCrops& plan, const Preprocess& preprocess)
      : plan_(plan), size_(preprocess.input_size), table_(preprocess.mean, preprocess.std) {}

  void open(const Image& image, uint32_t seed) override {
    image_ = &image;
    TorchRandom random(seed);
    crops_.clear();
    const auto draw = [&](size_t n, ImageCrops::Area area) {
      for (size_t i = 0; i < n; ++i)
        crops_.push_back(
            random_resized_crop(image.width, image.height, area.low, area.high, random));
    };
    draw(plan_.global_crops, plan_.global_area);
    draw(plan_.local_crops, plan_.local_area);
    draw_augmentations(seed);
  }

  void write(size_t index, std::span<float> out) override {
    const Crop& crop = crops_[index];
    const size_t own = view_side(plan_, index), size = own ? own : size_;
    resizer_.resize(Pixels(*image_).crop(crop.left, crop.top, crop.width, crop.height), size, size,
                    plan_.bilinear ? Filter::bilinear : Filter::bicubic, resized_);
    if (!augmentations_.empty()) apply(augmentations_[index], resized_);
    table_.write_planes(resized_, out.data());
  }

 private:
  // From numbers of their own: crops are the same without them, and a plan of fewer local crops has
  // the same global ones.
  void draw_augmentations(uint32_t seed) {
    augmentations_.clear();
    if (plan_.augmentation == ImageAugmentation::none) return;
    TorchRandom random(~seed);
    for (size_t i = 0; i < crops_.size(); ++i)
      augmentations_.push_back(draw_augmentation(i == 0                    ? CropRole::first_global
                                                 : i < plan_.global_crops ? CropRole::other_global
                                                                          : CropRole::local,
                                                 random));
  }

  ImageCrops plan_;
  size_t size_;
  PixelTable table_;
  PillowResizer resizer_;
  Image resized_;
  std::vector<Crop> crops_;
  std::vector<Augmentation> augmentations_;  // of each crop, or none
  const Image* image_ = nullptr;
};

class PatchMaker final : public ImageViews::Maker {
 public:
  PatchMaker(const ImagePatches& plan, const Preprocess& preprocess)
      : patches_(preprocess.input_size,
                 patch_grid(preprocess.input_size, plan.patch_count, plan.stride_scale),
                 plan.patch_size ? plan.patch_size : preprocess.input_size,
                 PixelTable(preprocess.mean, preprocess.std)) {}
  void open(const Image& image, uint32_t) override { patches_.open(image); }
  void write(size_t index, std::span<float> out) override { patches_.write(index, out); }

 private:
  PatchViews patches_;
};

void check_area(ImageCrops::Area area, const char* name) {
  if (!(area.low > 0 && area.low <= area.high))
    fail(fmt::format("expected 0 < low <= high, found {} to {}", area.low, area.high), name);
}

// Of two sorts, whose sum may be too large to be told.
void check_count(size_t one, size_t other, const char* place) {
  if (one > kMostViews || other > kMostViews - one || one + other == 0)
    fail(fmt::format("expected 1 to {} views of a sample, found {} + {}", kMostViews, one, other),
         place);
}

void check_size(size_t side, size_t input_size, const char* place) {
  if (side > input_size)
    fail(fmt::format("expected at most the {} pixels of the model's input, found {}", input_size,
                     side),
         place, "0 is as large as that");
}

[[noreturn]] void fail_plan() {
  fail("these views are of another kind of sample than images", "ViewPlan",
       "plan crops, patches or the whole image");
}

// How many views each plan of images gives.
struct Counter {
  size_t input_size;
  template <class Plan>  // of another kind of sample
  size_t operator()(const Plan&) const {
    fail_plan();
  }
  size_t operator()(const WholeView&) const { return 1; }
  size_t operator()(const WholeImage&) const { return 1; }
  size_t operator()(const ImageCrops& plan) const {
    check_area(plan.global_area, "ImageCrops::global_area");
    check_area(plan.local_area, "ImageCrops::local_area");
    check_count(plan.global_crops, plan.local_crops, "ImageCrops::global_crops");
    check_size(plan.local_size, input_size, "ImageCrops::local_size");
    return plan.global_crops + plan.local_crops;
  }
  size_t operator()(const ImagePatches& plan) const {
    const PatchGrid grid = patch_grid(input_size, plan.patch_count, plan.stride_scale);
    check_count(grid.count(), 0, "ImagePatches::stride_scale");
    check_size(plan.patch_size, input_size, "ImagePatches::patch_size");
    return grid.count();
  }
};

struct MakerOf {
  const Preprocess& preprocess;
  using Made = std::unique_ptr<ImageViews::Maker>;
  template <class Plan>
  Made operator()(const Plan&) const {
    fail_plan();
  }
  Made operator()(const WholeView&) const { return std::make_unique<EvaluationMaker>(preprocess); }
  Made operator()(const WholeImage&) const { return std::make_unique<EvaluationMaker>(preprocess); }
  Made operator()(const ImageCrops& plan) const {
    return std::make_unique<CropMaker>(plan, preprocess);
  }
  Made operator()(const ImagePatches& plan) const {
    return std::make_unique<PatchMaker>(plan, preprocess);
  }
};

}  // namespace

size_t image_view_count(const ViewPlan& plan, size_t input_size) {
  return std::visit(Counter{input_size}, plan);
}

uint32_t view_seed(uint64_t seed, std::string_view purpose, std::string_view sample_id) {
  return uint32_t(RandomStream(seed, purpose, fnv1a64(sample_id)).bits(0));
}

ImageViews::ImageViews(const ViewPlan& plan, const Preprocess& preprocess)
    : plan_(plan), input_size_(preprocess.input_size) {
  check(preprocess);
  const size_t count = image_view_count(plan, preprocess.input_size);
  maker_ = std::visit(MakerOf{preprocess}, plan);
  maker_->count = count;
}

ImageViews::~ImageViews() = default;
ImageViews::ImageViews(ImageViews&&) noexcept = default;
ImageViews& ImageViews::operator=(ImageViews&&) noexcept = default;

size_t ImageViews::count() const noexcept { return maker_->count; }
size_t ImageViews::view_floats(size_t view) const noexcept {
  const size_t own = view_side(plan_, view), side = own ? own : input_size_;
  return 3 * side * side;
}

void ImageViews::open(const Image& image, uint32_t seed) {
  check(image);
  check_proportion(image.width, image.height);  // a crop would hide it from the resizer
  maker_->open(image, seed);
  maker_->is_open = true;
}

void ImageViews::open(const Sample& sample, uint32_t seed) { open(image_of(sample), seed); }

void ImageViews::write(size_t view, InputBuffer& out) {
  const auto side = uint32_t(view_side(plan_, view));
  write(view, out.add_pixels(3 * input_size_ * input_size_, 0, side).first(view_floats(view)));
}

void ImageViews::write(size_t index, std::span<float> out) {
  if (!maker_->is_open) fail("no image is open", "ImageViews::write", "call open() first");
  if (index >= count() || out.size() != view_floats(index))
    fail(fmt::format("expected a view from 0 to {} and room for {} numbers, found view {} and {}",
                     count() - 1, view_floats(index), index, out.size()),
         "ImageViews::write");
  maker_->write(index, out);
}

}  // namespace fungi
