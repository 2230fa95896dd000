// SPDX-License-Identifier: Apache-2.0
// MATLAB files, as authors of data sets keep lists in them; needs libmatio. Internal to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fungi::dataset {

// Error unless they are those of a MATLAB file that libmatio may be trusted with: version 5, its
// elements inside of one another but not deeply, and not much larger than they are packed.
void check_mat(std::span<const uint8_t> bytes, const std::string& place);

class MatFile {
 public:
  // Error where it is none, or damaged, or this build has no libmatio.
  explicit MatFile(const std::filesystem::path& file);
  ~MatFile();

  // All elements of an array of whole numbers, whatever its type and shape; of a cell array of
  // texts. Error where there is no such variable, or it holds something else.
  std::vector<int64_t> numbers(const char* variable) const;
  std::vector<std::string> texts(const char* variable) const;
  // Of an array of structures one field of each.
  std::vector<int64_t> field_numbers(const char* variable, const char* field) const;
  std::vector<std::string> field_texts(const char* variable, const char* field) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi::dataset
