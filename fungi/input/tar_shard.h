// SPDX-License-Identifier: Apache-2.0
// One tar archive: its members in order, what their names mean, and their bytes. Only
// dataset_tar.cpp includes it.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {

namespace fs = std::filesystem;

inline constexpr size_t kStashBytes =
    size_t(256) << 20;  // members of a compressed shard read ahead of their turn

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

struct Member {
  size_t ordinal = 0;
  uint64_t offset = 0, size = 0;
};

// What the names of a shard mean, links followed.
class Names {
 public:
  void add(const TarReader& reader) {
    const std::string name = reader.name();
    const std::optional<std::string> target = reader.target();
    const auto known = target ? members_.find(*target) : members_.end();
    if (!target)
      members_[name] = {reader.ordinal(), reader.offset(), reader.size()};
    else if (!reader.is_symbolic() && known != members_.end())
      members_[name] = Member(known->second);  // as it is so far: a later one may have its name
    else
      targets_[name] = *target;
  }

  // Nullptr: a link to something that is not there, or to itself.
  const Member* find(std::string name) const {
    for (int hops = 0; hops < 40; ++hops) {  // as many as Linux follows
      if (const auto member = members_.find(name); member != members_.end()) return &member->second;
      const auto link = targets_.find(name);
      if (link == targets_.end()) return nullptr;
      name = link->second;
    }
    return nullptr;
  }
  const std::string& target(const std::string& name) const { return targets_.at(name); }

 private:
  std::unordered_map<std::string, Member> members_;
  std::unordered_map<std::string, std::string> targets_;
};

// One archive with its index of image members.
class Shard {
 public:
  explicit Shard(fs::path file) : file_(std::move(file)) {}

  const fs::path& file() const { return file_; }
  void set_compressed(bool compressed) { compressed_ = compressed; }
  void add(const Member& member) { ++wanted_[member.ordinal]; }

  std::vector<uint8_t> read(const Member& member) const {
    return compressed_ ? read_forwards(member) : read_at(member);
  }

 private:
  std::vector<uint8_t> read_at(const Member& member) const {
    const auto failed = [&](const std::string& why) {
      fail(fmt::format("cannot read the archive: {}", why), file_.string());
    };
    struct Descriptor {
      int fd;
      ~Descriptor() {
        if (fd >= 0) ::close(fd);
      }
    } file{::open(file_.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) failed(std::generic_category().message(errno));
    if (!fits(member.offset, member.size, size_of_file(file_)))
      failed("it is shorter than its headers say");
    std::vector<uint8_t> bytes(member.size);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t got =
          ::pread(file.fd, bytes.data() + at, bytes.size() - at, off_t(member.offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) failed(std::generic_category().message(errno));
      if (got == 0) failed("it has become shorter since it was indexed");
      at += size_t(got);
    }
    return bytes;
  }

  // Reads on until the member comes by, keeping what others will ask for; starts again when it has
  // passed.
  std::vector<uint8_t> read_forwards(const Member& member) const {
    const std::lock_guard lock(mutex_);
    if (!reader_) left_ = wanted_;
    size_t& left = left_[member.ordinal];
    if (left > 0) --left;
    bool again = left > 0;  // links will ask for it, too
    if (const auto kept = stash_.find(member.ordinal); kept != stash_.end()) {
      if (again) return kept->second;
      std::vector<uint8_t> bytes = std::move(kept->second);
      stashed_ -= bytes.size();
      stash_.erase(kept);
      return bytes;
    }
    if (!reader_ || reader_->ordinal() >= member.ordinal) {
      if (reader_) {  // from the beginning, as if nothing had been asked for
        left_ = wanted_;
        again = --left_[member.ordinal] > 0;
      }
      reader_ = std::make_unique<TarReader>(file_);
    }
    while (reader_->next()) {
      const bool here = reader_->ordinal() == member.ordinal;
      if (here && !again) return reader_->data();
      if (!here && !wanted_.count(reader_->ordinal())) continue;
      std::vector<uint8_t> bytes = reader_->data();
      if (!here) {
        keep(reader_->ordinal(), std::move(bytes));
      } else {
        keep(member.ordinal, bytes);
        return bytes;
      }
    }
    fail("cannot read the archive: it has changed since it was indexed", file_.string());
  }

  void keep(size_t ordinal, std::vector<uint8_t> bytes) const {
    std::vector<uint8_t>& place = stash_[ordinal];
    stashed_ += bytes.size() - place.size();
    place = std::move(bytes);
    while (stashed_ > kStashBytes) {
      stashed_ -= stash_.begin()->second.size();
      stash_.erase(stash_.begin());
    }
  }

  fs::path file_;
  bool compressed_ = false;
  std::unordered_map<size_t, size_t> wanted_;        // by how many samples
  mutable std::unordered_map<size_t, size_t> left_;  // of them, since the reader began
  mutable std::mutex mutex_;
  mutable std::unique_ptr<TarReader> reader_;
  mutable std::map<size_t, std::vector<uint8_t>> stash_;
  mutable size_t stashed_ = 0;
};

}  // namespace fungi::dataset
