// SPDX-License-Identifier: Apache-2.0
// The command line of fungi extract.
#pragma once

#include <string>
#include <vector>

#include "app/cli.h"
#include "app/text_columns.h"
#include "fungi/feature/follow.h"

namespace fungi::app {

struct ExtractArguments {
  ModelOptions model;
  std::string data, store, kind = "auto", split, preset = "native", like, storage = "float32",
                           given, part;
  TextColumnsArguments columns;
  std::vector<std::string> objectives{"kl", "dino", "simclr"};
  ProjectionArguments projection;
  std::string prefix, fold, classes, statistics = "model";
  double weight = 1, window = 0, hop = 0;  // the last two in seconds
  size_t limit = 0, shard = 0, max_tokens = 0;
  uint64_t seed = 42;
  bool exif = false, truncated = false, strict = false, dry_run = false, json = false,
       quiet = false, gather = false, mixed = false, overwrite = false, prune = false, retry = false, factors = false;
  // What comes of all these, and of the store of --like for those that are left out; said anew, it
  // is compared with that store when the new one is made.
  ExtractionSettings settings;

  std::optional<StorePart> part_of_data() const;  // --part

  void add_to(CLI::App& verb);

 private:
  void settle(const CLI::App& verb);
};

}  // namespace fungi::app
