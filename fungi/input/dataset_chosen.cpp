// SPDX-License-Identifier: Apache-2.0
// Some classes of a data set: ImageNet-100 is ImageNet and a list of a hundred of its classes.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/published.h"

namespace fungi {
namespace {

using dataset::number_labels;

class ChosenClasses final : public Dataset {
 public:
  ChosenClasses(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                const std::vector<std::string>& only, const std::vector<std::string>& fixed)
      : all_(std::move(all)) {
    const std::vector<std::string>& names = all_->class_names();
    std::vector<bool> wanted(names.size(), false);
    for (const std::string& name : only) {
      auto at = std::find(names.begin(), names.end(), name);  // or, "n01440764 tench"
      if (at == names.end())
        at = std::find(names.begin(), names.end(), name.substr(0, name.find_first_of(" \t")));
      if (at == names.end())
        fail(fmt::format("there is no class '{}' among the {} of the data set", name, names.size()),
             place.string(), "name classes as the data set does, one per line of `classes`");
      wanted[size_t(at - names.begin())] = true;
    }
    samples_ = all_->samples();
    ignored_ = all_->ignored(), notes_ = all_->notes();
    class_names_ = fixed;
    if (class_names_.empty())
      for (size_t k = 0; k < names.size(); ++k)
        if (wanted[k]) class_names_.push_back(names[k]);
    std::vector<std::string> texts;
    for (size_t i = 0; i < all_->size(); ++i) {
      const int label = all_->label(i);
      if (label < 0 || !wanted[size_t(label)]) continue;
      rows_.push_back(i);
      ids_.push_back(all_->id(i));
      texts.push_back(names[size_t(label)]);
    }
    class_names_ = number_labels(texts, class_names_, place.string(), labels_);
    notes_.push_back(fmt::format("{} of {} classes, {} of {} samples", only.size(), names.size(),
                                 rows_.size(), all_->size()));
    finish(all_->kind(), place);
  }

  std::vector<uint8_t> read(size_t i) const override { return all_->read(row(i)); }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    return all_->decode(row(i), bytes, options);
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return all_->stored_bytes(row(i));
  }
  std::string key(size_t i) const override { return all_->key(row(i)); }

 private:
  size_t row(size_t i) const {
    id(i);  // an Error where there is none
    return rows_[i];
  }
  std::unique_ptr<Dataset> all_;
  std::vector<size_t> rows_;
};

}  // namespace

std::unique_ptr<Dataset> choose_classes(std::unique_ptr<Dataset> all,
                                        const std::filesystem::path& place,
                                        const std::vector<std::string>& only,
                                        const std::vector<std::string>& class_names) {
  return std::make_unique<ChosenClasses>(std::move(all), place, only, class_names);
}

}  // namespace fungi
