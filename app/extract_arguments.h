// SPDX-License-Identifier: Apache-2.0
// The command line of fungi extract.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"

namespace fungi::app {

struct ExtractArguments {
  ModelOptions model;
  std::string data, store, kind = "auto", split, preset = "native", like, storage = "float32",
                           given;
  std::vector<std::string> objectives{"kl", "dino", "simclr"};
  ProjectionArguments projection;
  size_t limit = 0, shard = 0;
  uint64_t seed = 42;
  std::optional<uint64_t> projection_seed;  // of the store that is followed; default: seed
  bool exif = false, truncated = false, strict = false, dry_run = false, json = false,
       quiet = false, overwrite = false, prune = false, retry = false, factors = false;

  void add_to(CLI::App& verb);

 private:
  // What the command line leaves out comes from the store of --like; what it says is compared with
  // that store when the new one is made.
  void follow(const CLI::App& verb);
};

}  // namespace fungi::app
