// SPDX-License-Identifier: Apache-2.0
// Joins stores of parts (StoreOptions::part) into the one store that a single run would have
// written, byte for byte. Shard files get a second name where the file system allows it, so that
// nothing is copied and the parts may be deleted afterwards.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <span>

#include "fungi/store/manifest.h"
#include "fungi/store/writer.h"

namespace fungi {

struct MergeOptions {
  bool allow_mixed = false;  // parts of other versions or instruction sets than the first
  bool overwrite = false;    // throw away what the folder holds
  bool dry_run = false;      // check everything, change nothing
  RequireSame require_same = require_equal;
  std::function<void(size_t done, size_t shards)> progress = {};
  const std::atomic<bool>* stop = nullptr;          // set: ends between two shards
  std::function<void(const char* step)> on_step = {};  // as in StoreOptions
};

// All parts of one data set, in any order. Errors: one is missing, given twice, not finished or no
// part; they are of other data, settings, models or states; the folder holds something else.
// Repeated after a kill it goes on.
StoreTotals merge_parts(std::span<const std::filesystem::path> parts,
                        const std::filesystem::path& folder, const MergeOptions& options = {});

}  // namespace fungi
