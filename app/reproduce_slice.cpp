// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_slice.h"

namespace fungi::app {
namespace {

class Slice final : public Dataset {
 public:
  Slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place, size_t count)
      : all_(std::move(all)) {
    samples_ = all_->samples();
    class_names_ = all_->class_names();
    for (size_t i = 0; i < count; ++i) {
      rows_.push_back(i * all_->size() / count);
      ids_.push_back(all_->id(rows_.back()));
      labels_.push_back(all_->label(rows_.back()));
    }
    finish(all_->kind(), place);
  }

  std::vector<uint8_t> read(size_t i) const override { return all_->read(rows_.at(i)); }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    return all_->decode(rows_.at(i), bytes, options);
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return all_->stored_bytes(rows_.at(i));
  }
  std::string key(size_t i) const override { return all_->key(rows_.at(i)); }

 private:
  std::unique_ptr<Dataset> all_;
  std::vector<size_t> rows_;
};

class MaskSlice final : public MaskDataset {
 public:
  MaskSlice(std::unique_ptr<MaskDataset> all, const std::filesystem::path& place, size_t count)
      : all_(std::move(all)) {
    class_names_ = all_->class_names();
    ignore_ = all_->ignore(), unmeasured_ = all_->unmeasured();
    for (size_t i = 0; i < count; ++i) {
      rows_.push_back(i * all_->size() / count);
      ids_.push_back(all_->id(rows_.back()));
    }
    finish(place);
  }
  Image image(size_t i) const override { return all_->image(rows_.at(i)); }
  Mask mask(size_t i) const override { return all_->mask(rows_.at(i)); }

 private:
  std::unique_ptr<MaskDataset> all_;
  std::vector<size_t> rows_;
};

}  // namespace

std::unique_ptr<MaskDataset> slice(std::unique_ptr<MaskDataset> all,
                                   const std::filesystem::path& place, size_t count) {
  return std::make_unique<MaskSlice>(std::move(all), place, count);
}

std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               size_t count) {
  return std::make_unique<Slice>(std::move(all), place, count);
}

}  // namespace fungi::app
