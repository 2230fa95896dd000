// SPDX-License-Identifier: Apache-2.0
// An .npy file that grows at its end, over several runs if need be. Its header says how many rows
// there are only once it is finished; who wants to go on after a kill notes elsewhere how many were
// there when it was last flushed. Internal to the library.
#pragma once

#include <filesystem>
#include <string>

#include "fungi/base/descriptor.h"
#include "fungi/checkpoint/npy.h"

namespace fungi {

class GrowingNpy {
 public:
  // A file of the first `rows` rows of the one that is there, whatever its header says; 0: a new
  // one. descr: as numpy has it; row_bytes: of a row; columns: 0 for a vector. Error where there
  // are fewer rows, or another program writes the file.
  GrowingNpy(const std::filesystem::path& path, std::string descr, size_t row_bytes, size_t columns,
             size_t rows = 0);

  size_t rows() const { return rows_; }
  void append(std::span<const std::byte> whole_rows);
  template <class T>
  void append(std::span<const T> values) {
    append(std::as_bytes(values));
  }
  void flush();   // to the disk itself
  void finish();  // and the header

 private:
  [[noreturn]] void give_up(const char* what) const;
  std::string header() const;

  std::string path_, descr_;
  size_t row_bytes_, columns_, rows_;
  Descriptor file_;
};

}  // namespace fungi
