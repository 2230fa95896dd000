// SPDX-License-Identifier: Apache-2.0
// IDX files of bytes: MNIST and its kin, images with the labels beside them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/dataset_records.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

uint32_t big_endian(const uint8_t* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}

class IdxDataset final : public RecordDataset {
 public:
  IdxDataset(const std::vector<fs::path>& files, const fs::path& place,
             const DatasetOptions& options) {
    std::map<std::string, fs::path> named;
    for (const fs::path& path : files) {
      const auto [twin, added] = named.emplace(prefix_of(unzipped_name(path)), path);
      // torchvision leaves the archive beside what it unpacked.
      if (!added && unzipped_name(twin->second) == unzipped_name(path)) {
        notes_.push_back(fmt::format("'{}' is left out: it is a copy of '{}'",
                                     path.filename().string(), twin->second.filename().string()));
        continue;
      }
      if (!added)
        fail(fmt::format("expected one file of images called '{}', found '{}' and '{}'",
                         twin->first, twin->second.filename().string(), path.filename().string()),
             place.string(),
             "remove or rename one of them, or give one file instead of the folder");
      auto file = std::make_shared<RecordFile>(path);
      const std::vector<uint64_t> shape = shape_of(*file, 3);
      std::vector<int> labels(shape[0], -1);
      if (const fs::path beside = labels_beside(path); !beside.empty()) read_labels(beside, labels);
      add({std::move(file), 16, shape[1] * shape[2], shape[2], shape[1], 1, 0, shape[0]},
          prefix_of(path.filename().string()), labels);
    }
    if (!options.class_names.empty()) {
      std::vector<std::string> texts;
      for (const int label : labels_) texts.push_back(label < 0 ? "" : std::to_string(label));
      class_names_ = number_labels(texts, options.class_names, place.string(), labels_);
    }
    finish(DatasetKind::idx, place);
  }

 private:
  static std::string unzipped_name(const fs::path& file) {
    std::string name = file.filename().string();
    if (extension(file) == "gz") name.resize(name.size() - 3);
    return name;
  }

  // What ids begin with.
  static std::string prefix_of(std::string name) {
    if (const size_t at = name.find("images"); at != std::string::npos) name.resize(at);
    while (!name.empty() && (name.back() == '-' || name.back() == '.' || name.back() == '_'))
      name.pop_back();
    return name.empty() ? "images" : name;
  }

  // "images" is "labels" in the name of the labels, and "idx3" is "idx1"; either file may be
  // gzipped. Empty, with a note, when the name says neither or there is no such file.
  fs::path labels_beside(const fs::path& images) {
    std::string name = unzipped_name(images);
    const bool zipped = extension(images) == "gz";
    bool changed = false;
    const auto change = [&](std::string_view from, std::string_view to) {
      const size_t at = name.find(from);
      if (at == std::string::npos) return;
      name.replace(at, from.size(), to);
      changed = true;
    };
    change("images", "labels");
    change("idx3", "idx1");
    for (const bool zip : {zipped, !zipped})
      if (const fs::path file = images.parent_path() / (zip ? name + ".gz" : name);
          changed && fs::exists(file))
        return file;
    notes_.push_back(fmt::format(
        "the pictures of '{}' have no labels: {}", images.filename().string(),
        changed ? fmt::format("there is no '{}' beside it, plain or gzipped", name)
                : "with neither 'images' nor 'idx3' in its name, that of the labels is unknown"));
    return {};
  }

  // Header: 0, 0, type (8 = bytes), number of dimensions, each dimension as 32 bits; then the
  // values.
  static std::vector<uint64_t> shape_of(const RecordFile& file, unsigned dimensions) {
    uint8_t head[16] = {};
    if (file.size() >= 4 + 4 * dimensions) file.read(0, head, 4 + 4 * dimensions);
    if (head[0] || head[1] || head[2] != 8 || head[3] != dimensions)
      fail(fmt::format(
               "expected an IDX file of bytes with {} dimensions, found {:02x}{:02x}{:02x}{:02x}",
               dimensions, head[0], head[1], head[2], head[3]),
           file.path().string(), "images are idx3-ubyte, labels idx1-ubyte");
    std::vector<uint64_t> shape;
    uint64_t values = 1;
    for (unsigned d = 0; d < dimensions; ++d) {
      shape.push_back(big_endian(head + 4 + 4 * d));
      if (shape[d] == 0 || values > file.size() / shape[d])
        fail(fmt::format("dimension {} of {} does not fit a file of {} bytes", d, shape[d],
                         file.size()),
             file.path().string(), "the file is cut off or broken");
      values *= shape[d];
    }
    if (values + 4 + 4 * dimensions > file.size())
      fail(fmt::format("expected {} bytes, found {}", values + 4 + 4 * dimensions, file.size()),
           file.path().string(), "the file is cut off");
    return shape;
  }

  static void read_labels(const fs::path& path, std::vector<int>& labels) {
    const RecordFile file(path);
    const uint64_t count = shape_of(file, 1)[0];
    if (count != labels.size())
      fail(fmt::format("expected {} labels, found {}", labels.size(), count), path.string());
    std::vector<uint8_t> bytes(count);
    file.read(8, bytes.data(), bytes.size());
    std::copy(bytes.begin(), bytes.end(), labels.begin());
  }
};

}  // namespace

std::unique_ptr<Dataset> open_idx(const fs::path& path, const DatasetOptions& options) {
  const auto wanted = [&](const std::string& name) {
    if (name.find("idx3-ubyte") == std::string::npos) return false;
    const bool train = name.find("train") != std::string::npos;
    return options.split.empty() || train == (options.split == "train");
  };
  return std::make_unique<IdxDataset>(choose_files(path, options.split, "idx3-ubyte", wanted), path,
                                      options);
}

}  // namespace fungi::dataset
