// SPDX-License-Identifier: Apache-2.0
// The records of revisited Oxford and Paris: which pictures are the database, which the queries,
// and what belongs to each. Nothing in a .pkl is executed (checkpoint/pickle.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fungi {

struct RevisitedRecord {
  std::vector<uint32_t> easy, hard, junk;  // numbers of database images
};

struct RevisitedTruth {
  std::vector<std::string> database, queries;  // image names ("imlist", "qimlist")
  std::vector<RevisitedRecord> records;        // one per query ("gnd")
};

// {"imlist": [...], "qimlist": [...], "gnd": [{"easy": [...], "hard": [...], "junk": [...]}, ...]},
// pickled or JSON.
RevisitedTruth read_revisited(const std::filesystem::path& path);

}  // namespace fungi
