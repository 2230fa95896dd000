// SPDX-License-Identifier: Apache-2.0
// An evaluation over several seeds: of stores that were extracted with them, and of what the
// evaluation itself draws (SPEC 6.5 and 6.18).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

struct Spread {
  double mean = 0, deviation = 0;  // of these values alone, as numpy's std: divided by their number
};
Spread spread_of(const std::vector<double>& values);

// In names of stores this stands for the seed: "train-{seed}".
inline constexpr std::string_view kSeedPlace = "{seed}";
bool names_seed(std::string_view path);
std::string with_seed(std::string_view path, uint32_t seed);

// What decides about one evaluation.
struct SeededWork {
  bool stores = false;  // the name of one has a place for the seed
  bool draws = false;   // the evaluation draws something
  const char* hint = "";  // how it would
};
// Errors: a seed twice; nothing that the seeds decide about; no seeds, but a place for them.
void check_seeds(const std::vector<uint32_t>& seeds, const SeededWork& work);

}  // namespace fungi
