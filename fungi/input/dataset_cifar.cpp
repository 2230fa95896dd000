// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100, binary version.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/dataset_records.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& file) {
  std::vector<std::string> lines;
  if (!fs::exists(file)) return lines;
  std::string line;
  for (const uint8_t c : read_file_bytes(file)) {
    if (c != '\n' && c != '\r') {
      line += char(c);
    } else if (!line.empty()) {
      lines.push_back(std::move(line));
      line.clear();
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

// Records: one label byte (CIFAR-100: coarse, then fine), then 32x32 red, green and blue planes.
class CifarDataset final : public RecordDataset {
 public:
  CifarDataset(const std::vector<fs::path>& files, const fs::path& place,
               const DatasetOptions& options) {
    std::vector<std::string> names;
    for (const fs::path& path : files) {
      auto file = std::make_shared<RecordFile>(path);
      const std::string stem = path.stem().string();
      const bool hundred = stem == "train" || stem == "test" ||
                           (file->size() % 3073 != 0 && file->size() % 3074 == 0);
      const size_t head = hundred ? 2 : 1, record = head + 3072, count = file->size() / record;
      if (file->size() == 0 || file->size() % record != 0)
        fail(fmt::format("expected records of {} bytes (CIFAR-{}), found a file of {} bytes",
                         record, hundred ? 100 : 10, file->size()),
             path.string(), "give the binary version of CIFAR-10 or CIFAR-100");
      if (names.empty())
        names = read_lines(path.parent_path() /
                           (hundred ? "fine_label_names.txt" : "batches.meta.txt"));
      std::vector<int> labels(count);
      for (size_t i = 0; i < count; ++i) {
        uint8_t label = 0;
        file->read(i * record + head - 1, &label, 1);
        if (label >= (hundred ? 100 : 10))
          fail(fmt::format("record {} has the impossible label {}", i, label), path.string(),
               "give the binary version of CIFAR-10 or CIFAR-100");
        labels[i] = label;
      }
      add({std::move(file), head, record, 32, 32, 3, 0, count}, stem, labels);
    }
    number(names, options.class_names, place);
    finish(DatasetKind::cifar, place);
  }

 private:
  // Given classes are places in their list, by name where the names are known, else by number.
  void number(const std::vector<std::string>& names, const std::vector<std::string>& given,
              const fs::path& place) {
    const int most = labels_.empty() ? -1 : *std::max_element(labels_.begin(), labels_.end());
    if (!names.empty() && most >= int(names.size()))
      fail(fmt::format("label {} has no name: the file of names has {} lines", most, names.size()),
           place.string(), "fetch batches.meta.txt or fine_label_names.txt again, or remove it");
    class_names_ = names;
    if (given.empty()) return;
    std::vector<std::string> texts;
    for (const int label : labels_)
      texts.push_back(names.empty() ? std::to_string(label) : names[size_t(label)]);
    class_names_ = number_labels(texts, given, place.string(), labels_);
  }
};

}  // namespace

std::unique_ptr<Dataset> open_cifar(const fs::path& path, const DatasetOptions& options) {
  const auto wanted = [&](const std::string& name) {
    if (!name.ends_with(".bin")) return false;
    const bool test = name == "test.bin" || name == "test_batch.bin";
    const bool train = name == "train.bin" || name.starts_with("data_batch");
    return options.split == "test" ? test : options.split == "train" ? train : test || train;
  };
  return std::make_unique<CifarDataset>(choose_files(path, options.split, "CIFAR .bin", wanted),
                                        path, options);
}

}  // namespace fungi::dataset
