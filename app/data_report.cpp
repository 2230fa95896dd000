// SPDX-License-Identifier: Apache-2.0
#include "app/data_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/words.h"
#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "fungi/input/mask_dataset.h"
#include "fungi/input/published.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;
using ProgressFunction = std::function<void(size_t, size_t)>;

constexpr size_t kExamples = 3;

struct Look {
  bool decode = false;
  const ProgressFunction& progress;
};

void add_example(SplitReport& report, const std::string& what) {
  if (report.examples.size() < kExamples) report.examples.push_back(what);
}

// Files of sample i; counts it when it is there.
bool is_there(SplitReport& report, const Dataset& data, size_t i, const Look& look) {
  if (data.samples() != SampleKind::text && data.kind() != DatasetKind::cifar &&
      data.kind() != DatasetKind::idx && data.kind() != DatasetKind::tar) {
    const auto bytes = data.stored_bytes(i);
    if (!bytes || *bytes == 0) {
      ++(bytes ? report.empty : report.missing);
      add_example(report, fmt::format("{}: {}", data.id(i), bytes ? "empty" : "not there"));
      return false;
    }
  }
  if (look.decode) try {
      data.decode(i, data.read(i));
    } catch (const Error& e) {
      ++report.damaged;
      add_example(report, fmt::format("{}: {}", data.id(i), worded(e.message())));
      return false;
    }
  return true;
}

SplitReport count(const Dataset& data, const std::string& name, const PublishedSplit* official,
                  const Look& look) {
  SplitReport report{.name = name, .samples = data.size()};
  std::map<int, size_t> sizes;
  for (size_t i = 0; i < data.size(); ++i) {
    const bool there = is_there(report, data, i, look);
    if (data.label(i) >= 0) sizes[data.label(i)] += there;
    if (look.decode || i % 1000 == 0) look.progress(i + 1, data.size());
  }
  report.classes = sizes.size();
  for (const auto& [label, size] : sizes) {
    report.smallest = report.largest == 0 ? size : std::min(report.smallest, size);
    report.largest = std::max(report.largest, size);
  }
  const auto& names = data.class_names();
  if (official)  // a class without a sample has a name or a count, too
    for (size_t label = 0; label < std::max(names.size(), official->counts.size()); ++label)
      sizes.emplace(int(label), 0);
  for (const auto& [number, size] : sizes) {
    const size_t label = size_t(number);
    if (!official || official->agrees(label, size)) continue;
    const bool exact = label < official->counts.size();
    report.off.push_back({label < names.size() ? names[label] : std::to_string(label), size,
                          exact ? official->counts[label] : official->least,
                          exact ? official->counts[label] : official->most});
  }
  if (official) report.official = official->samples;
  return report;
}

template <class Compute>
SplitReport guarded(const std::string& name, std::optional<size_t> official,
                    const Compute& compute) {
  try {
    return compute();
  } catch (const Error& e) {
    SplitReport failed{.name = name, .official = official};
    failed.error = worded(e).what();
    return failed;
  }
}

// A set that open_dataset() reads, with the splits of `set`.
DataReport look_at_set(const PublishedSet& set, const fs::path& root, const Look& look) {
  DataReport report{set.key, set.title, to_string(set.samples), root};
  for (const PublishedSplit& split : set.splits)
    report.splits.push_back(guarded(split.name, split.samples, [&] {
      const auto data = open_dataset(root, {.samples = set.samples, .split = split.name});
      return count(*data, split.name, &split, look);
    }));
  return report;
}

PublishedSet cifar_set(size_t classes) {
  return {.key = fmt::format("cifar{}", classes),
          .title = fmt::format("CIFAR-{}", classes),
          .classes = classes,
          .splits = {{"train", 50000, 50000 / classes, 50000 / classes},
                     {"test", 10000, 10000 / classes, 10000 / classes}}};
}

std::optional<DataReport> look_at_records(const fs::path& path, const Look& look) {
  const auto data = open_dataset(path);
  if (data->kind() != DatasetKind::cifar) return {};
  const bool hundred = data->id(0).starts_with("train/") || data->id(0).starts_with("test/");
  return look_at_set(cifar_set(hundred ? 100 : 10), path, look);
}

std::optional<DataReport> look_at_sounds(const fs::path& path, const Look& look) {
  if (fs::is_regular_file(path / "meta/esc50.csv"))
    return look_at_set({.key = "esc50",
                        .title = "ESC-50, fold 1 for testing",
                        .samples = SampleKind::sound,
                        .classes = 50,
                        .splits = {{"train", 1600, 32, 32}, {"test", 400, 8, 8}}},
                       path, look);
  if (fs::is_regular_file(path / "testing_list.txt") &&
      fs::is_regular_file(path / "validation_list.txt"))
    return look_at_set({.key = "speechcommands",
                        .title = "Speech Commands V2",
                        .samples = SampleKind::sound,
                        .classes = 35,
                        .splits = {{"train", 84843}, {"validation", 9981}, {"test", 11005}}},
                       path, look);
  return {};
}

std::optional<DataReport> look_at_masks(const fs::path& path, const Look& look) {
  const fs::path root = unpacked_masks(path);
  const bool voc = fs::is_directory(root / "JPEGImages"),
             ade = fs::is_directory(root / "images/training") &&
                   fs::is_directory(root / "annotations/training");
  if (!voc && !ade) return {};
  DataReport report{voc ? "voc" : "ade20k", voc ? "Pascal VOC 2012" : "ADE20K",
                    "picture with a mask", root};
  const std::vector<std::pair<std::string, size_t>> splits =
      voc ? std::vector<std::pair<std::string, size_t>>{{"trainaug", 10582},
                                                        {"train", 1464},
                                                        {"val", 1449}}
          : std::vector<std::pair<std::string, size_t>>{{"training", 20210}, {"validation", 2000}};
  for (const auto& [name, official] : splits)
    report.splits.push_back(guarded(name, official, [&, split = name, whole = official] {
      const auto data = open_mask_dataset(root, {.split = split});
      SplitReport one{.name = split, .samples = data->size(), .official = whole};
      for (size_t i = 0; look.decode && i < data->size(); ++i) try {
          look.progress(i + 1, data->size());
          data->image(i), data->mask(i);
        } catch (const Error& e) {
          ++one.damaged;
          add_example(one, fmt::format("{}: {}", data->id(i), worded(e.message())));
        }
      for (const std::string& note : data->notes()) report.notes.push_back(split + ": " + note);
      one.classes = data->class_names().size();
      return one;
    }));
  return report;
}

DataReport look_at_any(const fs::path& path, const Look& look) {
  std::string first;
  for (const SampleKind samples : {SampleKind::image, SampleKind::sound, SampleKind::text}) try {
      DataReport report;
      const auto data = open_dataset(path, {.samples = samples});
      report.kind = fmt::format("{}, {}", to_string(samples), to_string(data->kind()));
      report.root = path;
      report.splits.push_back(count(*data, "everything", nullptr, look));
      for (const std::string& note : data->notes()) report.notes.push_back(worded(note));
      return report;
    } catch (const Error& e) {
      if (first.empty()) first = worded(e).what();
    }
  fail("expected pictures, sounds or texts, or the layout of a published data set, found none",
       path.string(), first);
}

}  // namespace

bool DataReport::is_whole() const {
  return std::all_of(splits.begin(), splits.end(),
                     [](const SplitReport& split) { return split.is_whole(); });
}

DataReport look_at_data(const fs::path& path, bool decode, const ProgressFunction& progress) {
  if (!fs::exists(path)) fail("there is no such file or folder", path.string(), "check the path");
  const Look look{decode, progress};
  for (const SampleKind samples : {SampleKind::image, SampleKind::text, SampleKind::sound})
    if (const auto found = find_published(path, samples))
      return look_at_set(*found->set, found->root, look);
  if (fs::is_directory(path))
    for (const auto look_at : {look_at_masks, look_at_sounds})
      if (auto report = look_at(path, look)) return *report;
  try {
    if (auto report = look_at_records(path, look)) return *report;
  } catch (const Error&) {  // no pictures: perhaps it holds something else
  }
  return look_at_any(path, look);
}

}  // namespace fungi::app
