// SPDX-License-Identifier: Apache-2.0
// libzip over the mapped file. Declared sizes are checked before anything is unpacked, and obeyed
// while unpacking.
#include "fungi/checkpoint/zip.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <mutex>

#include "fungi/base/error.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr size_t kMostEntries = size_t{1} << 20;
constexpr size_t kMostBytes = size_t{64} << 30;  // of all entries together, unpacked
constexpr size_t kBestDeflate = 1032;            // no deflate stream can grow by more
constexpr size_t kMostGrowth = 1000;             // the whole archive against its file
constexpr size_t kFreeBytes = size_t{1} << 20;   // small archives may grow by more

std::string text_of(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

struct ZipArchive::Handle {
  zip_t* zip = nullptr;
  std::mutex lock;
  ~Handle() { zip_discard(zip); }

  std::unique_ptr<zip_file_t, CloseFile> open(size_t index) {
    return std::unique_ptr<zip_file_t, CloseFile>(zip_fopen_index(zip, index, 0));
  }
};

ZipArchive::ZipArchive(std::shared_ptr<const FileBytes> file)
    : file_(std::move(file)), handle_(std::make_unique<Handle>()) {
  const auto bytes = file_->bytes();
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) handle_->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (handle_->zip == nullptr) {
    zip_source_free(source);
    fail(fmt::format("is not a readable zip archive: {}", text_of(&error)), path(), kFetchAgain);
  }
  zip_error_fini(&error);

  const auto count = static_cast<size_t>(zip_get_num_entries(handle_->zip, 0));
  if (count > kMostEntries)
    fail(fmt::format("has {} entries; at most {} are accepted", count, kMostEntries), path(),
         kHostile);
  entries_.reserve(count);  // by_name_ points into it
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(handle_->zip, i, ZIP_FL_ENC_RAW, &stat) != 0)
      fail(fmt::format("entry {} cannot be read: {}", i, zip_strerror(handle_->zip)), path(),
           kFetchAgain);
    entries_.push_back({stat.name, stat.size});
    if (stat.encryption_method != ZIP_EM_NONE) broken(i, "is encrypted");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      broken(i, fmt::format("is packed by method {}; stored and deflated entries can be read",
                            stat.comp_method));
    const size_t growth = stat.comp_method == ZIP_CM_STORE ? 1 : kBestDeflate;
    if (stat.comp_size > bytes.size() || stat.size > stat.comp_size * growth + 64)
      broken(i, fmt::format("should unpack from {} bytes to {}, which cannot be", stat.comp_size,
                            stat.size));
    total = std::min(total + stat.size, kMostBytes + 1);
    if (!by_name_.emplace(entries_.back().name, i).second) broken(i, "occurs twice");
  }
  if (total > kMostBytes || total > bytes.size() * kMostGrowth + kFreeBytes)
    fail(fmt::format("would unpack from {} bytes to {} or more", bytes.size(), total), path(),
         kHostile);
}

ZipArchive::~ZipArchive() = default;

std::optional<size_t> ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::string ZipArchive::place(size_t index) const {
  return fmt::format("{}: entry '{}'", path(), printable(entries_[index].name));
}

void ZipArchive::broken(size_t index, const std::string& why) const {
  fail(why, place(index), kHostile);
}

void ZipArchive::read(size_t index, std::span<std::byte> head, std::span<std::byte> body) const {
  FUNGI_ASSERT(head.size() + body.size() == entries_[index].size);
  const std::lock_guard guard(handle_->lock);
  const auto file = handle_->open(index);
  if (!file) broken(index, fmt::format("cannot be opened: {}", zip_strerror(handle_->zip)));
  for (std::span<std::byte> part : {head, body}) {
    while (!part.empty()) {
      const auto got = zip_fread(file.get(), part.data(), part.size());
      if (got < 0)
        broken(index, fmt::format("cannot be unpacked: {}", zip_file_strerror(file.get())));
      if (got == 0) broken(index, "is shorter than its declared size");
      part = part.subspan(static_cast<size_t>(got));
    }
  }
  char beyond;  // the read that meets the end is the one that compares the checksum
  const auto got = zip_fread(file.get(), &beyond, 1);
  if (got < 0) broken(index, fmt::format("is damaged: {}", zip_file_strerror(file.get())));
  if (got > 0) broken(index, "is longer than its declared size");
}

std::string ZipArchive::read_text(size_t index, size_t longest) const {
  if (entries_[index].size > longest)
    broken(index,
           fmt::format("has {} bytes; at most {} are accepted", entries_[index].size, longest));
  std::string text(entries_[index].size, '\0');
  read(index, {}, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string ZipArchive::read_start(size_t index, size_t at_most) const {
  std::string text(std::min(at_most, entries_[index].size), '\0');
  const std::lock_guard guard(handle_->lock);
  const auto file = handle_->open(index);
  if (!file) broken(index, fmt::format("cannot be opened: {}", zip_strerror(handle_->zip)));
  size_t filled = 0;
  while (filled < text.size()) {
    const auto got = zip_fread(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0)
      broken(index, fmt::format("cannot be unpacked: {}", zip_file_strerror(file.get())));
    if (got == 0) broken(index, "is shorter than its declared size");
    filled += static_cast<size_t>(got);
  }
  return text;
}

}  // namespace fungi
