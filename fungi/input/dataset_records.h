// SPDX-License-Identifier: Apache-2.0
// Raw pixels in fixed-size records, the common ground of CIFAR and IDX files; only dataset_*.cpp
// include it. Internal to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fungi/base/descriptor.h"
#include "fungi/input/dataset.h"

namespace fungi::dataset {

// A file read at random: from disk, or, when it is gzipped, from memory. Reading is thread-safe.
class RecordFile {
 public:
  explicit RecordFile(std::filesystem::path file);

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  void read(uint64_t offset, uint8_t* out, size_t count) const;

 private:
  [[noreturn]] void failed(const std::string& why) const;
  void unzip();

  std::filesystem::path path_;
  Descriptor file_;  // none where it is gzipped
  uint64_t size_ = 0;
  std::vector<uint8_t> memory_;
};

class RecordDataset : public Dataset {
 public:
  std::vector<uint8_t> read(size_t i) const override;
  Sample decode(size_t i, std::span<const uint8_t> planes, const DecodeOptions&) const override;

 protected:
  // Records of one file, all of one size; pixels are planes, three or one.
  struct Run {
    std::shared_ptr<RecordFile> file;
    uint64_t offset;  // of the first record's pixels
    size_t record;    // bytes from one record to the next
    size_t width, height, planes;
    size_t first, count;  // samples
    size_t pixels() const { return width * height * planes; }
  };
  // Appends a run; ids are "<prefix>/<number>".
  void add(Run run, const std::string& prefix, const std::vector<int>& labels);

 private:
  const Run& run_of(size_t i) const;
  std::vector<Run> runs_;
};

// The files of a folder that `wanted` accepts, or the one file given. Error when there are none.
std::vector<std::filesystem::path> choose_files(
    const std::filesystem::path& path, const std::string& split, const char* what,
    const std::function<bool(const std::string&)>& wanted);

}  // namespace fungi::dataset
