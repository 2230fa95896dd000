// SPDX-License-Identifier: Apache-2.0
// scores.jsonl: settings in the first line, then a line for each picture in the order of the data
// set, written as it is done. Internal to this room.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fungi/base/descriptor.h"
#include "fungi/evaluate/segmentation.h"
#include "fungi/segment/bank.h"

namespace fungi::segment {

struct PictureLine {
  std::string id;
  std::vector<Confusion> kinds;  // or, where it failed, none
  std::optional<BankFailure> failure;
};

class ScoresFile {
 public:
  // Reads the lines of an earlier run of the same settings (JSON); those of another go away, and so
  // does all after a line that was cut or whose predictions are gone.
  ScoresFile(const std::filesystem::path& file, const std::string& settings, size_t kinds,
             size_t classes, const std::function<bool(const PictureLine&)>& is_whole);
  std::vector<PictureLine> take_lines() { return std::move(lines_); }
  void add(const PictureLine& line);

 private:
  std::string path_;
  Descriptor file_;
  std::vector<PictureLine> lines_;
};

}  // namespace fungi::segment
