// SPDX-License-Identifier: Apache-2.0
// A folder that lives as long as a test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/input/pattern.h"

namespace fungi::testing {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "fungi-input-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no scratch folder");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
  }
  void write(const std::string& name, const std::vector<uint8_t>& content) const {
    write(name, {reinterpret_cast<const char*>(content.data()), content.size()});
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<uint8_t> golden_image(const std::string& name) {
  return read_file_bytes(std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/images" / name);
}

}  // namespace fungi::testing
