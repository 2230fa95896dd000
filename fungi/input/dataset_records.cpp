// SPDX-License-Identifier: Apache-2.0
// Fixed-size records of raw pixels on disk or, when gzipped, in memory.
#include "fungi/input/dataset_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {

namespace fs = std::filesystem;

RecordFile::RecordFile(fs::path file) : path_(std::move(file)) {
  if (extension(path_) == "gz") {
    unzip();
    return;
  }
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file_.number < 0) failed(std::generic_category().message(errno));
  size_ = uint64_t(std::max<off_t>(::lseek(file_.number, 0, SEEK_END), 0));
}

void RecordFile::failed(const std::string& why) const {
  fail(fmt::format("cannot read the file: {}", why), path_.string());
}

void RecordFile::read(uint64_t offset, uint8_t* out, size_t count) const {
  if (offset > size_ || count > size_ - offset) failed("it is too short");
  if (file_.number < 0)
    std::memcpy(out, memory_.data() + offset, count);
  else if (!read_all_at(file_, offset, std::as_writable_bytes(std::span(out, count))))
    failed(errno ? std::generic_category().message(errno) : "it has become shorter");
}

void RecordFile::unzip() {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> stream(gzopen(path_.c_str(), "rb"), &gzclose);
  if (!stream) failed(std::generic_category().message(errno));
  constexpr size_t kChunk = 1 << 20, kLimit = size_t(4) << 30;
  for (;;) {
    memory_.resize(size_ + kChunk);
    const int got = gzread(stream.get(), memory_.data() + size_, unsigned(kChunk));
    int code = Z_OK;
    if (got < 0) failed(gzerror(stream.get(), &code));
    size_ += size_t(got);
    if (size_ > kLimit) failed("it unpacks to more than 4 GiB");
    if (size_t(got) < kChunk) break;
  }
  memory_.resize(size_);
}

std::vector<uint8_t> RecordDataset::read(size_t i) const {
  const Run& run = run_of(i);
  std::vector<uint8_t> bytes(run.pixels());
  run.file->read(run.offset + (i - run.first) * run.record, bytes.data(), bytes.size());
  return bytes;
}

Sample RecordDataset::decode(size_t i, std::span<const uint8_t> planes,
                             const DecodeOptions&) const {
  const Run& run = run_of(i);
  if (planes.size() != run.pixels())
    fail(fmt::format("expected {} bytes of pixels, found {}", run.pixels(), planes.size()), id(i),
         "give those that read() gives");
  const size_t plane = run.width * run.height;
  Image image{run.width, run.height, std::vector<uint8_t>(3 * plane)};
  for (size_t p = 0; p < plane; ++p)
    for (size_t c = 0; c < 3; ++c)
      image.rgb[3 * p + c] = planes[(run.planes == 3 ? c * plane : 0) + p];
  return image;
}

void RecordDataset::add(Run run, const std::string& prefix, const std::vector<int>& labels) {
  run.first = size();
  for (size_t i = 0; i < run.count; ++i) ids_.push_back(fmt::format("{}/{:05}", prefix, i));
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  runs_.push_back(std::move(run));
}

const RecordDataset::Run& RecordDataset::run_of(size_t i) const {
  id(i);  // an Error where there is none
  return *(std::upper_bound(runs_.begin(), runs_.end(), i,
                            [](size_t k, const Run& run) { return k < run.first; }) -
           1);
}

std::vector<fs::path> choose_files(const fs::path& path, const std::string& split, const char* what,
                                   const std::function<bool(const std::string&)>& wanted) {
  if (!split.empty() && split != "train" && split != "test")
    fail(fmt::format("expected split 'train' or 'test', found '{}'", split), path.string());
  if (!fs::is_directory(path)) {
    refuse_split(path, split);
    return {path};
  }
  std::vector<fs::path> files;
  for (const fs::path& file : list_folder(path))
    if (wanted(file.filename().string())) files.push_back(file);
  if (files.empty())
    fail(fmt::format("expected {} files{}, found none", what,
                     split.empty() ? "" : " of split '" + split + "'"),
         path.string());
  return files;
}

}  // namespace fungi::dataset
