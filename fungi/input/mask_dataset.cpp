// SPDX-License-Identifier: Apache-2.0
// What all data sets with masks share: checks, and the number of classes.
#include "fungi/input/mask_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "fungi/base/error.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostClasses = 256;

constexpr std::array<std::pair<const char*, MaskLayout>, 6> kLayouts = {
    {{"auto", MaskLayout::automatic},
     {"folders", MaskLayout::folders},
     {"voc", MaskLayout::voc},
     {"ade20k", MaskLayout::ade20k},
     {"camvid", MaskLayout::camvid},
     {"list", MaskLayout::list}}};

}  // namespace

const char* to_string(MaskLayout layout) {
  for (const auto& [name, value] : kLayouts)
    if (value == layout) return name;
  return "unknown";
}

MaskLayout parse_mask_layout(std::string_view name) {
  std::string choices;
  for (const auto& [text, layout] : kLayouts) {
    if (name == text) return layout;
    choices += (choices.empty() ? "" : ", ") + std::string(text);
  }
  fail(fmt::format("expected one of {}, found '{}'", choices, name), "layout of the masks");
}

const std::string& MaskDataset::id(size_t i) const {
  if (i >= ids_.size())
    fail(fmt::format("asked for pair {} of {}", i, ids_.size()), "masks", "count from 0");
  return ids_[i];
}

MaskDataset::Pair MaskDataset::pair(size_t i) const {
  Pair out{image(i), mask(i)};
  if (out.mask.width != out.image.width || out.mask.height != out.image.height)
    fail(fmt::format("expected a mask of the picture's {}x{} pixels, found {}x{}", out.image.width,
                     out.image.height, out.mask.width, out.mask.height),
         id(i), "give the mask that was drawn on this very picture; resize neither");
  check_mask(out.mask, count_, ignore_, id(i));
  return out;
}

void check_mask(const Mask& mask, size_t classes, int ignore, const std::string& place) {
  std::array<bool, 256> allowed{};
  for (size_t c = 0; c < 256; ++c) allowed[c] = c < classes || int(c) == ignore;
  for (size_t p = 0; p < mask.values.size(); ++p)
    if (!allowed[mask.values[p]])
      fail(fmt::format("the mask holds the value {} at ({}, {}): expected a class of 0 to {}{}",
                       mask.values[p], p % mask.width, p / mask.width, classes - 1,
                       ignore < 0 ? "" : fmt::format(", or {} where nothing counts", ignore)),
           place,
           "mend the mask, state the value with `ignore`, or name all classes with `class_names`");
}

void MaskDataset::find_classes(const std::function<void(size_t, size_t)>& progress) {
  if (count_) return;
  std::array<bool, 256> seen{};
  std::string reason;
  size_t read = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (progress) progress(i, size());
    try {
      for (const uint8_t value : mask(i).values) seen[value] = true;
      ++read;
    } catch (const Exhausted&) {
      throw;
    } catch (const Error& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  if (progress) progress(size(), size());
  if (!read) fail("none of the masks can be read; the first: " + reason, "masks", "");
  if (ignore_ >= 0) seen[size_t(ignore_)] = false;
  for (size_t c = 0; c < seen.size(); ++c)
    if (seen[c]) count_ = c + 1;
  if (!count_)
    fail(fmt::format("the masks hold nothing but the value {}, where nothing counts", ignore_),
         "masks", "state another value, or none, with `ignore`");
}

void MaskDataset::use_classes(const MaskDataset& train) {
  if (!class_names_.empty() && !train.class_names_.empty() && class_names_ != train.class_names_)
    fail("the classes are not those of the training pictures", "masks",
         "give both the same names with `class_names`");
  class_names_ = train.class_names_;
  count_ = train.count_;
}

void MaskDataset::finish(const fs::path& place) {
  if (ids_.empty())
    fail("found no picture with a mask", place.string(),
         "give images/ beside masks/ with files of the same names, a folder of Pascal VOC, ADE20K "
         "or CamVid, or a CSV file of picture and mask");
  std::unordered_set<std::string_view> seen;
  for (const std::string& id : ids_)
    if (!seen.insert(id).second)
      fail(fmt::format("the pair '{}' occurs twice", id), place.string(),
           "ids name the results: remove the second one, or rename it");
  if (!class_names_.empty()) count_ = class_names_.size();
  if (count_ > kMostClasses)
    fail(fmt::format("expected at most {} classes, found {}", kMostClasses, count_), place.string(),
         "a mask has one byte per pixel: join classes");
}

std::vector<std::string> read_class_names(const fs::path& file) {
  const std::vector<uint8_t> bytes = read_file_bytes(file);
  std::vector<std::string> names(1);
  for (const uint8_t byte : bytes)
    if (byte == '\n')
      names.emplace_back();
    else if (byte != '\r')
      names.back() += char(byte);
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty())
    fail("expected the name of a class in each line, found none", file.string(),
         "write the name of class 0 into the first line");
  if (names.size() > kMostClasses)
    fail(fmt::format("expected at most {} classes, found {} lines", kMostClasses, names.size()),
         file.string(), "a mask has one byte per pixel: join classes");
  std::unordered_set<std::string_view> seen;
  for (size_t line = 0; line < names.size(); ++line) {
    if (names[line].empty())
      fail(fmt::format("line {} is empty: expected the name of class {}", line + 1, line),
           file.string(), "write a name, or 'unused'");
    if (!seen.insert(names[line]).second)
      fail(fmt::format("'{}' occurs twice, in line {} again", names[line], line + 1), file.string(),
           "name each class once");
  }
  return names;
}

}  // namespace fungi
