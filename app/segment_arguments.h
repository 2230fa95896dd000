// SPDX-License-Identifier: Apache-2.0
// What `fungi segment` may be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"
#include "app/seeds.h"
#include "fungi/segment/protocol.h"

namespace fungi::app {

struct SegmentArguments {
  std::vector<std::string> data;
  ModelOptions model;
  std::string out, bank, objective = "patch_simclr", preset = "native", projection = "factored";
  std::string size = "512", layout = "auto", train_split, test_split, class_names, search = "auto";
  std::string kind, colours;
  size_t projection_rows = 0, memory = 0, epochs = 0, images = 0, k = 0, lists = 0, probes = 0,
         rerank = 0, shown = 6;
  double temperature = 0;
  uint64_t seed = 42;
  SeedsOption seeds;  // each writes into a folder of its own
  int ignore = 255;
  bool few_shot = false, at_picture_size = false, no_masks = false, no_page = false, json = false,
       quiet = false;

  void add_to(CLI::App& verb);

  PatchFeatureOptions features() const;
  SegmentOptions options() const;
  std::optional<int> stated_ignore;  // where it was

 private:
  void settle(const CLI::App& verb);
  SegmentOptions options_;
};

}  // namespace fungi::app
