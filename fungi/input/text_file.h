// SPDX-License-Identifier: Apache-2.0
// A file of texts that is read piece by piece; it may be larger than the memory. Internal to this
// room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "fungi/base/descriptor.h"
#include "fungi/input/sample.h"

namespace fungi::dataset {

inline constexpr char kStandardInput[] = "-";

class TextFile {
 public:
  // What cannot be read at random, a pipe or `-` for standard input, is first copied into a file
  // without a name, which goes with this object. Error for what is no UTF-8 text: UTF-16, archives
  // and other binary files.
  explicit TextFile(const std::filesystem::path& file);

  const std::string& name() const { return name_; }  // for messages
  uint64_t begin() const { return begin_; }          // behind a byte order mark
  uint64_t size() const { return size_; }
  // Bytes [from, to). Exhausted where they are no longer there. Safe to call from any thread.
  std::string read(uint64_t from, uint64_t to) const;

 private:
  void copy_to_unnamed_file();

  std::string name_;
  Descriptor file_;
  uint64_t begin_ = 0, size_ = 0;
};

// The text of a file that holds one, without a byte order mark and without the ends of its last
// lines. Error, with the name as its place, where it is none.
Text decode_text_file(std::span<const uint8_t> bytes, const std::string& name);

// Error where bytes that begin a file say that it is something else than UTF-8 text.
void require_text(std::string_view first_bytes, const std::string& name);

}  // namespace fungi::dataset
