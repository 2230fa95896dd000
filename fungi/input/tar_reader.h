// SPDX-License-Identifier: Apache-2.0
// One tar archive from its beginning to its end, through libarchive. Only the files of tar data
// sets include it. Internal to this room.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {

namespace fs = std::filesystem;

inline constexpr size_t kFirstPiece = size_t(1) << 20;  // of a member, before more is believed

inline std::string too_large(const std::string& name, uint64_t size) {
  return fmt::format("expected a member of at most 1 GiB, found '{}' of {} bytes", name, size);
}

// Whether a plain archive of `held` bytes (nothing: not known) can have such a member.
inline bool fits(uint64_t offset, uint64_t size, std::optional<uint64_t> held) {
  return !held || (size <= *held && offset <= *held - size);
}

class TarReader {
 public:
  explicit TarReader(const fs::path& file) : file_(file), archive_(archive_read_new()) {
    // Those that libarchive has built in: for others it would start a program.
    for (const auto support :
         {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
          archive_read_support_filter_xz, archive_read_support_filter_zstd,
          archive_read_support_filter_lz4, archive_read_support_filter_compress})
      support(archive_.get());
    archive_read_support_format_tar(archive_.get());
    archive_read_support_format_gnutar(archive_.get());
    check(archive_read_open_filename(archive_.get(), file.c_str(), 1 << 16));
  }

  // Goes to the next regular file or link; false at the end.
  bool next() {
    for (;;) {
      const int status = archive_read_next_header(archive_.get(), &entry_);
      if (status == ARCHIVE_EOF) return false;
      check(status);
      ++ordinal_;
      const auto type = archive_entry_filetype(entry_);
      if (!archive_entry_pathname(entry_)) continue;
      if (type == AE_IFREG || type == AE_IFLNK || archive_entry_hardlink(entry_)) return true;
    }
  }

  std::string name() const { return without_dot(archive_entry_pathname(entry_)); }
  bool is_symbolic() const { return archive_entry_filetype(entry_) == AE_IFLNK; }
  // Name of the member whose content this one has; nothing when it has its own. A symbolic link
  // starts from its folder, a hard link (which may carry its own bytes, too) from the root.
  std::optional<std::string> target() const {
    if (const char* hard = archive_entry_hardlink(entry_); hard && size() == 0)
      return without_dot(hard);
    if (!is_symbolic()) return {};
    const char* soft = archive_entry_symlink(entry_);
    return (fs::path(name()).parent_path() / (soft ? soft : "")).lexically_normal().string();
  }
  size_t ordinal() const { return ordinal_; }  // of the member, from 1
  uint64_t size() const { return uint64_t(archive_entry_size(entry_)); }
  // Plain tar: where the member's bytes begin in the file.
  uint64_t offset() const { return uint64_t(archive_filter_bytes(archive_.get(), 0)); }
  bool compressed() const { return archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE; }

  std::vector<uint8_t> data() {
    if (size() > kLargestFile) fail(too_large(name(), size()), file_.string());
    // A header may promise what the archive does not hold: memory follows what is there.
    if (!compressed() && !fits(offset(), size(), size_of_file(file_)))
      fail(fmt::format("member '{}' is cut off", name()), file_.string());
    const size_t total = size();
    std::vector<uint8_t> bytes(std::min(total, kFirstPiece));
    for (size_t at = 0; at < total;) {
      if (at == bytes.size()) bytes.resize(std::min(total, 2 * at));
      const la_ssize_t got =
          archive_read_data(archive_.get(), bytes.data() + at, bytes.size() - at);
      if (got < 0) check(ARCHIVE_FATAL);
      if (got == 0) fail(fmt::format("member '{}' is cut off", name()), file_.string());
      at += size_t(got);
    }
    return bytes;
  }

 private:
  static std::string without_dot(const std::string& name) {
    return name.starts_with("./") ? name.substr(2) : name;
  }

  void check(int status) const {
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;
    // Not the archive's fault, so no sample may be recorded as bad.
    const int code = archive_errno(archive_.get());
    if (code == EMFILE || code == ENFILE || code == ENOMEM)
      fail_reading("cannot read the archive", code, file_);
    const char* reason = archive_error_string(archive_.get());
    fail(fmt::format("cannot read the archive: {}", reason ? reason : "unknown reason"),
         file_.string(), "check it with 'tar -tf'");
  }

  struct Close {
    void operator()(archive* a) const { archive_read_free(a); }
  };
  fs::path file_;
  std::unique_ptr<archive, Close> archive_;
  archive_entry* entry_ = nullptr;
  size_t ordinal_ = 0;
};

}  // namespace fungi::dataset
