// SPDX-License-Identifier: Apache-2.0
// Which of the paper's data sets and checkpoints lie in the user's folders, and what is missing.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/paper.h"

namespace fungi::app {

struct FoundSplit {
  std::filesystem::path path;
  std::string split = {}, fold = {};  // see DatasetOptions; empty: everything
};

struct FoundData {
  FoundSplit train, test;       // of one path where a folder holds both (CIFAR), and for retrieval
  FoundSplit validation;        // the official one; its path may be empty
  std::filesystem::path truth;  // of retrieval
  std::filesystem::path label_names;  // of texts whose labels are numbers; may be empty
};

struct Absent {
  std::string kind, key, title, reason;  // kind: "data set", "checkpoint" or "result"
};

struct Findings {
  std::map<std::string, FoundData> data;
  std::map<std::string, std::filesystem::path> checkpoints;
  std::vector<Absent> absent;
  std::vector<std::string> notes;  // e.g. files under the models' folder that cannot be read
};

struct FindOptions {
  std::string data, models;  // folders; empty: not given
  std::map<std::string, std::string>
      use;  // checkpoints by the key of their backbone, whatever they look like
};

// Looks for what the table needs and for nothing else.
Findings find_for(const PaperTable& table, const FindOptions& options);

}  // namespace fungi::app
