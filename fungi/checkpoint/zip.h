// SPDX-License-Identifier: Apache-2.0
// The entries of a zip archive (.pth, .npz), through libzip, with limits that a zip bomb cannot
// pass. Stored and deflated entries only. Const and safe to share: libzip itself is not, so one
// lock guards it. Internal to this room.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fungi/checkpoint/file_bytes.h"

namespace fungi {

class ZipArchive {
 public:
  explicit ZipArchive(std::shared_ptr<const FileBytes> file);
  ~ZipArchive();

  struct Entry {
    std::string name;
    size_t size;  // of the unpacked bytes, as declared; read() holds the archive to it
  };
  const std::vector<Entry>& entries() const { return entries_; }
  std::optional<size_t> find(std::string_view name) const;

  // Unpacks one entry: its first head.size() bytes into head, all others into body, which must fit
  // exactly. Checks the entry's checksum.
  void read(size_t index, std::span<std::byte> head, std::span<std::byte> body) const;
  std::string read_text(size_t index,
                        size_t longest) const;  // the whole entry; Error beyond longest
  std::string read_start(size_t index, size_t at_most) const;  // without checksum

  const std::string& path() const { return file_->path(); }
  std::string place(size_t index) const;  // "file: entry 'name'"

 private:
  struct Handle;
  [[noreturn]] void broken(size_t index, const std::string& why) const;

  std::shared_ptr<const FileBytes> file_;
  std::unique_ptr<Handle> handle_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace fungi
