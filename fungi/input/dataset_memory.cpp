// SPDX-License-Identifier: Apache-2.0
// Pictures and texts that a program already holds.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/sound.h"

namespace fungi {
namespace {

constexpr char kPlace[] = "memory_dataset";

std::string key_of(const Image& image) {
  const std::string_view pixels(reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size());
  return fmt::format("{}x{}-{:016x}", image.width, image.height, fnv1a64(pixels));
}
std::string key_of(const Sound& sound) {
  const std::string_view samples(reinterpret_cast<const char*>(sound.samples.data()),
                                 sound.samples.size() * sizeof(float));
  return fmt::format("{}-{:016x}", sound.rate, fnv1a64(samples));
}
std::string key_of(const Text& text) { return dataset::text_key(text.utf8); }

std::vector<uint8_t> bytes_to_decode(const Image&) { return {}; }  // there are none
std::vector<uint8_t> bytes_to_decode(const Sound&) { return {}; }
std::vector<uint8_t> bytes_to_decode(const Text& text) {
  return {text.utf8.begin(), text.utf8.end()};
}

SampleKind kind_of(const Image*) { return SampleKind::image; }
SampleKind kind_of(const Text*) { return SampleKind::text; }
SampleKind kind_of(const Sound*) { return SampleKind::sound; }

template <class Held>
class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(std::vector<std::string> ids, std::vector<Held> held, std::vector<int> labels,
                std::vector<std::string> class_names)
      : held_(std::move(held)) {
    ids_ = std::move(ids), labels_ = std::move(labels), class_names_ = std::move(class_names);
    samples_ = kind_of(held_.data());
    const char* const what = samples_ == SampleKind::image  ? "pictures"
                             : samples_ == SampleKind::text ? "texts"
                                                            : "sounds";
    if (held_.empty())
      fail(fmt::format("expected {}, found none", what), kPlace, "give at least one");
    if (labels_.empty()) labels_.assign(ids_.size(), -1);
    if (ids_.size() != held_.size() || labels_.size() != held_.size())
      fail(fmt::format("expected an id and a label for each of {} {}, found {} and {}",
                       held_.size(), what, ids_.size(), labels_.size()),
           kPlace);
    for (size_t i = 0; i < held_.size(); ++i) check(i);
    finish(DatasetKind::flat, kPlace);
  }

  std::vector<uint8_t> read(size_t i) const override { return bytes_to_decode(held_.at(i)); }
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    return held_.at(i);
  }
  std::string key(size_t i) const override { return key_of(held_.at(i)); }

 private:
  void check(size_t i) const {
    fungi::check(held_[i], ids_[i]);
    const auto classes = int64_t(class_names_.size());
    if (labels_[i] < -1 || (classes > 0 && labels_[i] >= classes))
      fail(fmt::format("the label {} has no class: there are {} classes", labels_[i], classes),
           ids_[i], "number the classes from 0 in the order of their names; -1 is no label");
  }

  std::vector<Held> held_;
};

}  // namespace

std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Image> images,
                                        std::vector<int> labels,
                                        std::vector<std::string> class_names) {
  return std::make_unique<MemoryDataset<Image>>(std::move(ids), std::move(images),
                                                std::move(labels), std::move(class_names));
}

std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Text> texts,
                                        std::vector<int> labels,
                                        std::vector<std::string> class_names) {
  return std::make_unique<MemoryDataset<Text>>(std::move(ids), std::move(texts), std::move(labels),
                                               std::move(class_names));
}

std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Sound> sounds,
                                        std::vector<int> labels,
                                        std::vector<std::string> class_names) {
  return std::make_unique<MemoryDataset<Sound>>(std::move(ids), std::move(sounds),
                                                std::move(labels), std::move(class_names));
}

}  // namespace fungi
