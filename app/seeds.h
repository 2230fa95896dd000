// SPDX-License-Identifier: Apache-2.0
// --seeds of the evaluation verbs: the same evaluation for each seed, and what they have in common.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli.h"
#include "fungi/evaluate/seeds.h"

namespace fungi::app {

// A number (or a list of them) of an answer, and the column of it in a table; without a head it is
// in the JSON alone.
struct Measure {
  std::string name, head;
};

struct SeedsOption {
  std::vector<uint32_t> seeds;

  CLI::Option* add_to(CLI::App& verb);

  // `answer` gives the JSON objects of one seed, one of each combination, or a single object.
  // Without seeds it is asked once, with none; its answer goes through `print` or is printed as
  // JSON. With seeds each object has what all have in common (`same`), the mean and the deviation
  // of each measure, and all answers by seed; the table has the measures, unless `print_joined`
  // has a form of its own.
  using Answer = std::function<nlohmann::json(const uint32_t* seed)>;
  using Print = std::function<void(const nlohmann::json&)>;
  int run(const SeededWork& work, const std::vector<std::string>& same,
          const std::vector<Measure>& measures, bool json, const Answer& answer, const Print& print,
          const Print& print_joined = {}) const;
};

// The path of a store, with the seed in its place.
std::string store_path(const std::string& text, const uint32_t* seed);

}  // namespace fungi::app
