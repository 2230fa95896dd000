// SPDX-License-Identifier: Apache-2.0
// Which published data set lies in a folder, and its samples as a Dataset.
#include "fungi/input/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/published_parts.h"

namespace fungi {

namespace fs = std::filesystem;
using namespace dataset;

namespace {

const std::vector<PublishedReader>& readers() {
  static const std::vector<PublishedReader> all = [] {
    std::vector<PublishedReader> list;
    for (auto& part : {list_readers(), folder_readers(), mat_readers(), retrieval_readers(),
                       text_readers()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

const PublishedReader& reader_of(const PublishedSet& set) {
  for (const PublishedReader& reader : readers())
    if (reader.set.key == set.key) return reader;
  fail(fmt::format("there is no reader of '{}'", set.key), "published data set");
}

std::string without_partition(const std::string& split) {
  return split.substr(0, split.find_last_not_of("0123456789") + 1);
}

std::string official_names(const PublishedSet& set) {
  std::vector<std::string> names;
  for (const PublishedSplit& split : set.splits) names.push_back(split.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool PublishedSplit::agrees(size_t label, size_t found) const {
  if (!counts.empty()) return label < counts.size() && found == counts[label];
  return most == 0 || (found >= least && found <= most);
}

const PublishedSplit* PublishedSet::split(const std::string& name) const {
  const auto called = [&](const char* one) -> const PublishedSplit* {
    for (const PublishedSplit& split : splits)
      if (split.name == one) return &split;
    return nullptr;
  };
  if (const PublishedSplit* exact = called(name.c_str())) return exact;
  if (name == "queries") return called("query");
  if (name == "validation" || name == "valid" || name == "dev") return called("val");
  if (name == "trainval" && !called("val")) return called("train");  // Oxford's pets
  if (name == "test") return called("val");  // ImageNet's test labels are not public
  const std::string bare = without_partition(name);
  return key == "dtd" && bare != name ? split(bare) : nullptr;
}

PublishedList PublishedFolder::list(const std::string& split) const {
  if (split == "all") return list_all();
  const PublishedReader& reader = reader_of(*set);
  const PublishedSplit* official = split.empty() ? nullptr : set->split(split);
  if (!official)
    fail(split.empty() ? fmt::format("{} has several splits, and none was asked for", set->title)
                       : fmt::format("{} has no split '{}'", set->title, split),
         root.string(),
         fmt::format("`split` takes {}, or all, which are then one data set",
                     official_names(*set)));
  const bool partition = without_partition(split) != split && set->key == "dtd";
  PublishedList found = reader.list(root, partition ? split : official->name);
  if (split == "test" && official->name == "val")
    found.notes.push_back(fmt::format(
        "the labels of {}'s test split are not public: its validation split stands for it",
        set->title));
  if (found.samples.size() != official->samples)
    found.notes.push_back(fmt::format("{}, {}: {} samples here, {} in the published set",
                                      set->title, official->name, found.samples.size(),
                                      official->samples));
  return found;
}

// Ids tell where a sample lies, or of texts in which split.
PublishedList PublishedFolder::list_all() const {
  const PublishedReader& reader = reader_of(*set);
  PublishedList all;
  for (const PublishedSplit& official : set->splits) {
    if (official.joined) continue;
    PublishedList part = reader.list(root, official.name);
    for (PublishedSample& sample : part.samples) {
      const std::string in = set->samples == SampleKind::text ? official.name : part.below;
      if (!in.empty()) sample.id = in + "/" + sample.id;
      all.samples.push_back(std::move(sample));
    }
    if (all.class_names.empty()) all.class_names = std::move(part.class_names);
    all.notes.insert(all.notes.end(), part.notes.begin(), part.notes.end());
  }
  return all;
}

std::optional<PublishedFolder> find_published(const fs::path& path, SampleKind samples) {
  if (!is_folder(path)) return {};
  for (const PublishedReader& reader : readers()) {
    if (reader.set.samples != samples) continue;
    if (reader.lies_at(path)) return PublishedFolder{&reader.set, path};
    for (const char* inside : reader.inside)
      if (is_folder(path / inside) && reader.lies_at(path / inside))
        return PublishedFolder{&reader.set, path / inside};
  }
  return {};
}

std::vector<std::string> read_class_list(const fs::path& file) {
  std::vector<std::string> names;
  for (const ListLine& line : list_lines(file)) names.push_back(list_words(line, 1, "class")[0]);
  if (names.empty())
    fail("expected the name of a class in each line, found none", file.string(), "write some");
  return names;
}

const std::vector<PublishedSet>& published_sets() {
  static const std::vector<PublishedSet> sets = [] {
    std::vector<PublishedSet> list;
    for (const PublishedReader& reader : readers()) list.push_back(reader.set);
    return list;
  }();
  return sets;
}

namespace dataset {
namespace {

class Published final : public Dataset {
 public:
  Published(const PublishedFolder& folder, const DatasetOptions& options) {
    samples_ = folder.set->samples;
    PublishedList list = folder.list(options.split);
    folder_ = list.below.empty() ? folder.root : folder.root / list.below;
    std::vector<std::string> texts;
    for (PublishedSample& sample : list.samples) {
      ids_.push_back(std::move(sample.id));
      labels_.push_back(sample.label);
      if (samples_ == SampleKind::text) texts_.push_back(std::move(sample.text));
      if (options.class_names.empty()) continue;
      texts.push_back(sample.label < 0           ? ""
                      : list.class_names.empty() ? std::to_string(sample.label)
                                                 : list.class_names.at(size_t(sample.label)));
    }
    class_names_ = std::move(list.class_names);
    if (!options.class_names.empty())
      class_names_ = number_labels(texts, options.class_names, folder.root.string(), labels_);
    notes_ = std::move(list.notes);
    finish(samples_ == SampleKind::text    ? DatasetKind::list
           : folder.set->classes == 0 ? DatasetKind::flat
                                      : DatasetKind::classes,
           folder.root);
  }

  std::vector<uint8_t> read(size_t i) const override {
    if (samples_ != SampleKind::text) return read_sample(folder_ / id(i));
    id(i);  // an Error where there is none
    return {texts_[i].begin(), texts_[i].end()};
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return samples_ == SampleKind::text ? std::nullopt : size_of_file(folder_ / id(i));
  }
  fs::path file(size_t i) const override {
    return samples_ == SampleKind::text ? fs::path() : folder_ / id(i);
  }

 private:
  fs::path folder_;
  std::vector<std::string> texts_;
};

}  // namespace

std::unique_ptr<Dataset> open_published(const fs::path& path, const DatasetOptions& options) {
  const auto found = find_published(path, options.samples);
  if (found && found->set->split_by_others && options.split.empty()) return nullptr;
  return found ? std::make_unique<Published>(*found, options) : nullptr;
}

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::vector<ListLine> list_lines(const fs::path& file) {
  if (!is_file(file))
    fail("the list is missing", file.string(), "unpack the archive of the data set again");
  std::vector<ListLine> lines;
  const std::vector<uint8_t> bytes = read_file_bytes(file);
  std::string line;
  size_t number = 1;
  const auto end = [&] {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos)
      lines.push_back({line, fmt::format("{}, line {}", file.string(), number)});
    line.clear();
    ++number;
  };
  for (const uint8_t byte : bytes)
    if (byte == '\n')
      end();
    else
      line += char(byte);
  end();
  return lines;
}

std::vector<std::string> list_words(const ListLine& line, size_t count, const char* shape) {
  std::vector<std::string> words;
  size_t at = 0;
  while (words.size() < count) {
    at = line.text.find_first_not_of(" \t", at);
    if (at == std::string::npos) break;
    const size_t end = words.size() + 1 == count ? line.text.find_last_not_of(" \t") + 1
                                                 : line.text.find_first_of(" \t", at);
    words.push_back(line.text.substr(at, end == std::string::npos ? end : end - at));
    at = end;
    if (at == std::string::npos) break;
  }
  if (words.size() < count)
    fail(fmt::format("expected '{}', found '{}'", shape, line.text), line.place,
         "unpack the archive of the data set again");
  return words;
}

size_t list_number(const std::string& word, size_t least, size_t most, const std::string& place) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < least || number > most)
    fail(fmt::format("expected a number from {} to {}, found '{}'", least, most, word), place,
         "unpack the archive of the data set again");
  return number;
}

std::string inside_path(const std::string& name, const std::string& place) {
  const fs::path path(name);
  const bool leaves = std::any_of(path.begin(), path.end(), [](const fs::path& part) {
    return part == ".." || part.native().find('\0') != std::string::npos;
  });
  if (name.empty() || path.is_absolute() || leaves)
    fail(fmt::format("expected the name of a file inside the folder, found '{}'", name), place,
         "unpack the archive of the data set again");
  return name;
}

ClassNumbers::ClassNumbers(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) numbers_.emplace_back(names[i], int(i));
  std::sort(numbers_.begin(), numbers_.end());
}

int ClassNumbers::of(const std::string& name, const std::string& place) const {
  const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), std::pair(name, 0));
  if (at == numbers_.end() || at->first != name)
    fail(fmt::format("there is no class '{}' among the {} of the data set", name, numbers_.size()),
         place, "unpack the archive of the data set again");
  return at->second;
}

PublishedList list_class_folders(const fs::path& folder) {
  PublishedList list;
  for (const fs::directory_entry& of_class : list_folder(folder)) {
    if (!of_class.is_directory()) continue;
    const std::string name = of_class.path().filename().string();
    const size_t before = list.samples.size();
    for (const fs::directory_entry& file : list_folder(of_class))
      if (is_image_extension(extension(file)))
        list.samples.push_back(
            {name + "/" + file.path().filename().string(), int(list.class_names.size())});
    if (list.samples.size() > before) list.class_names.push_back(name);
  }
  return list;
}

}  // namespace dataset
}  // namespace fungi
