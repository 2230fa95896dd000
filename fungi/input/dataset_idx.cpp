// SPDX-License-Identifier: Apache-2.0
// IDX files of bytes: MNIST and its kin, images with the labels beside them.
#include <fmt/format.h>

#include <algorithm>

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
    for (const fs::path& path : files) {
      auto file = std::make_shared<RecordFile>(path);
      const std::vector<uint64_t> shape = shape_of(*file, 3);
      std::string name = path.filename().string();
      std::vector<int> labels(shape[0], -1);
      if (const size_t at = name.find("images"); at != std::string::npos) {
        std::string beside = name;
        beside.replace(at, 6, "labels").replace(beside.find("idx3"), 4, "idx1");
        if (fs::exists(path.parent_path() / beside))
          read_labels(path.parent_path() / beside, labels);
        name.resize(at);
      }
      while (!name.empty() && (name.back() == '-' || name.back() == '.' || name.back() == '_'))
        name.pop_back();
      add({std::move(file), 16, shape[1] * shape[2], shape[2], shape[1], 1, 0, shape[0]},
          name.empty() ? "images" : name, labels);
    }
    class_names_ = options.class_names;
    finish(DatasetKind::idx, place);
  }

 private:
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
