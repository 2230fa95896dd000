// SPDX-License-Identifier: Apache-2.0
// Pictures that a program already holds.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/input/dataset.h"

namespace fungi {
namespace {

constexpr char kPlace[] = "memory_dataset";

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(std::vector<std::string> ids, std::vector<Image> images, std::vector<int> labels,
                std::vector<std::string> class_names)
      : images_(std::move(images)) {
    ids_ = std::move(ids), labels_ = std::move(labels), class_names_ = std::move(class_names);
    if (images_.empty()) fail("expected pictures, found none", kPlace, "give at least one");
    if (labels_.empty()) labels_.assign(ids_.size(), -1);
    if (ids_.size() != images_.size() || labels_.size() != images_.size())
      fail(fmt::format("expected an id and a label for each of {} pictures, found {} and {}",
                       images_.size(), ids_.size(), labels_.size()),
           kPlace);
    for (size_t i = 0; i < images_.size(); ++i) check(i);
    finish(DatasetKind::flat, kPlace);
  }

  std::vector<uint8_t> read(size_t) const override { return {}; }  // there is nothing to decode
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    return images_.at(i);
  }
  std::string key(size_t i) const override {
    const Image& image = images_.at(i);
    const std::string_view pixels(reinterpret_cast<const char*>(image.rgb.data()),
                                  image.rgb.size());
    return fmt::format("{}x{}-{:016x}", image.width, image.height, fnv1a64(pixels));
  }

 private:
  void check(size_t i) const {
    fungi::check(images_[i], ids_[i]);
    const auto classes = int64_t(class_names_.size());
    if (labels_[i] < -1 || (classes > 0 && labels_[i] >= classes))
      fail(fmt::format("the label {} has no class: there are {} classes", labels_[i], classes),
           ids_[i], "number the classes from 0 in the order of their names; -1 is no label");
  }

  std::vector<Image> images_;
};

}  // namespace

std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Image> images,
                                        std::vector<int> labels,
                                        std::vector<std::string> class_names) {
  return std::make_unique<MemoryDataset>(std::move(ids), std::move(images), std::move(labels),
                                         std::move(class_names));
}

}  // namespace fungi
