// SPDX-License-Identifier: Apache-2.0
// Labels of one store in the numbers of another: two splits list their classes on their own, so
// numbers alone do not tell.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/store/store.h"

namespace fungi {
namespace {

constexpr char kNoLabels[] = "extract a folder with one folder per class, or a list with labels";

std::vector<int64_t> align(const std::vector<std::string>& classes,
                           const std::vector<int64_t>& labels,
                           const std::vector<std::string>& other, bool allow_unknown,
                           const std::string& place) {
  constexpr char kBoth[] =
      "a folder of classes has names, a list of whole numbers has none: write a list (path,label) "
      "for the folder, with the numbers of the other one, or names in both";
  for (const int64_t label : labels)
    if (label < -1 || (!other.empty() && label >= int64_t(other.size())))
      fail(fmt::format("the label {} has no class: there are {} classes", label, other.size()),
           place, "number the classes from 0 in the order of their names; -1 is no label");
  const bool labelled =
      std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  if (!classes.empty() && other.empty()) {
    if (!labelled) fail("expected labels, found none", place, kNoLabels);
    fail("the labels are only numbers, those of the training data have class names", place, kBoth);
  }
  if (classes.empty() && !other.empty()) {
    fail("the labels have class names, the training data has no labels or only numbers", place,
         kBoth);
  }
  if (classes.empty()) return labels;
  std::unordered_map<std::string, int64_t> number;
  for (size_t i = 0; i < classes.size(); ++i) number.emplace(classes[i], static_cast<int64_t>(i));
  std::vector<int64_t> translated(other.size(), -1), aligned;
  for (size_t i = 0; i < other.size(); ++i) {
    if (const auto found = number.find(other[i]); found != number.end())
      translated[i] = found->second;
  }
  aligned.reserve(labels.size());
  for (int64_t label : labels) {
    const int64_t there = label < 0 ? -1 : translated[static_cast<size_t>(label)];
    if (label >= 0 && there < 0 && !allow_unknown) {
      fail(fmt::format("the class '{}' is not among the {} classes of the training data",
                       other[static_cast<size_t>(label)], classes.size()),
           place, "use splits of the same data set");
    }
    aligned.push_back(there);
  }
  return aligned;
}

}  // namespace

void require_labels(const Store& store) {
  const std::vector<int64_t>& labels = store.labels();
  const auto first = std::find_if(labels.begin(), labels.end(), [](int64_t l) { return l < 0; });
  if (first == labels.end()) return;
  const size_t missing =
      size_t(std::count_if(first, labels.end(), [](int64_t l) { return l < 0; }));
  if (missing == labels.size()) {
    fail("expected labels, found none", store.folder().string(), kNoLabels);
  }
  fail(fmt::format("expected a label for every row, {} of {} have none, e.g. '{}'", missing,
                   labels.size(), store.ids()[size_t(first - labels.begin())]),
       store.folder().string(),
       "pictures beside the class folders have none: repeat the extraction with `kind=classes` "
       "and `prune`; in a list, label every row");
}

std::vector<int64_t> align_labels(const std::vector<std::string>& classes, const FeatureSet& other,
                                  bool allow_unknown) {
  return align(classes, other.labels, other.classes, allow_unknown, "labels");
}

std::vector<int64_t> align_labels(const std::vector<std::string>& classes, const Store& other,
                                  bool allow_unknown) {
  return align(classes, other.labels(), other.classes(), allow_unknown, other.folder().string());
}

}  // namespace fungi
