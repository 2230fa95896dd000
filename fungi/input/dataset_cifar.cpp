// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100, binary and Python version.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/input/cifar_pickle.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/dataset_records.h"
#include "fungi/input/published_parts.h"

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
    for (const fs::path& path : files)
      if (is_pickle(path))
        add_pickle(path, names);
      else
        add_records(path, names);
    number(names, options.class_names, place);
    finish(DatasetKind::cifar, place);
  }

 private:
  // A record begins with a class, and there are no 128.
  static bool is_pickle(const fs::path& path) {
    const RecordFile file(path);
    uint8_t first = 0;
    if (file.size() > 0) file.read(0, &first, 1);
    return first == 0x80;
  }

  void add_records(const fs::path& path, std::vector<std::string>& names) {
    auto file = std::make_shared<RecordFile>(path);
    const std::string stem = path.stem().string();
    const bool hundred =
        stem == "train" || stem == "test" || (file->size() % 3073 != 0 && file->size() % 3074 == 0);
    const size_t head = hundred ? 2 : 1, record = head + 3072, count = file->size() / record;
    if (file->size() == 0 || file->size() % record != 0)
      fail(fmt::format("expected records of {} bytes (CIFAR-{}), found a file of {} bytes", record,
                       hundred ? 100 : 10, file->size()),
           path.string(), "give the binary version of CIFAR-10 or CIFAR-100");
    if (names.empty())
      names =
          read_lines(path.parent_path() / (hundred ? "fine_label_names.txt" : "batches.meta.txt"));
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

  void add_pickle(const fs::path& path, std::vector<std::string>& names) {
    const CifarBatch batch = read_cifar_batch(path);
    const fs::path meta = path.parent_path() / (batch.hundred ? "meta" : "batches.meta");
    if (names.empty() && fs::exists(meta)) names = read_cifar_names(meta);
    const size_t count = batch.labels.size();
    add({std::make_shared<RecordFile>(path), batch.offset, 3072, 32, 32, 3, 0, count},
        path.stem().string(), batch.labels);
  }

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

fs::path unpacked_cifar(const fs::path& folder) {
  const auto has = [&](const char* name) { return is_file(folder / name); };
  if (has("batches.meta") || (has("meta") && has("train") && has("test"))) return folder;
  fs::path only;
  for (const char* name :
       {"cifar-10-batches-py", "cifar-10-batches-bin", "cifar-100-python", "cifar-100-binary"})
    if (is_folder(folder / name)) {
      if (!only.empty()) return {};
      only = folder / name;
    }
  return only;
}

std::unique_ptr<Dataset> open_cifar(const fs::path& path, const DatasetOptions& options) {
  const bool pickles = fs::is_directory(path) && (fs::is_regular_file(path / "batches.meta") ||
                                                  fs::is_regular_file(path / "meta"));
  const auto wanted = [&](const std::string& name) {
    const fs::path file(name);
    if (file.extension() != (pickles ? "" : ".bin")) return false;
    const std::string stem = file.stem().string();
    const bool test = stem == "test" || stem == "test_batch";
    const bool train = stem == "train" || stem.starts_with("data_batch");
    return options.split == "test" ? test : options.split == "train" ? train : test || train;
  };
  return std::make_unique<CifarDataset>(
      choose_files(path, options.split, pickles ? "CIFAR's" : "CIFAR .bin", wanted), path, options);
}

}  // namespace fungi::dataset
