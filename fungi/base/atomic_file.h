// SPDX-License-Identifier: Apache-2.0
// Files that are either there and whole, or not there: written under another name, flushed, then
// renamed into place. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "fungi/base/descriptor.h"

namespace fungi {

// A file that grows under the name "<path>.tmp" and takes its own name in finish(). Without that it
// vanishes again, and an older file at `path` is untouched. A symbolic link is replaced, not
// what it names: folders of links to the files of another one must not change that. Error when
// `path` is a folder, a device or a pipe.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write_at(uint64_t offset, std::span<const std::byte> bytes);  // over what was written
  void finish();                                                     // last

  // For a library that writes by name: it opens the file of this name, locks it itself, and closes
  // it before finish(). Our own lock, which would keep it out, goes.
  const std::string& hand_over();

 private:
  [[noreturn]] void give_up(const char* what) const;
  std::string target_, name_;
  Descriptor file_;
  bool kept_ = false;
};

// For a file that a user names: where the symbolic links end that lead to it; there may be nothing
// yet.
std::filesystem::path behind_links(std::filesystem::path path);

// Writes the parts one after the other into "<path>.tmp" beside the target and renames it. A file
// left by a killed run has that very name, so repeating the write removes it. One writer per path.
// Error when the disk is full etc.; then nothing is left behind and an older file at `path` is
// untouched.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path,
                           std::initializer_list<std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace fungi
