// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"

namespace fungi {

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  Spread spread;
  const double n = double(values.size());
  for (const double value : values) spread.mean += value;
  spread.mean /= n;
  double square = 0;
  for (const double value : values) square += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(square / n);
  return spread;
}

bool names_seed(std::string_view path) { return path.find(kSeedPlace) != std::string_view::npos; }

std::string with_seed(std::string_view path, uint32_t seed) {
  std::string out(path);
  const std::string number = std::to_string(seed);
  for (size_t at = 0; (at = out.find(kSeedPlace, at)) != std::string::npos; at += number.size())
    out.replace(at, kSeedPlace.size(), number);
  return out;
}

void check_seeds(const std::vector<uint32_t>& seeds, const SeededWork& work) {
  if (seeds.empty()) {
    if (work.stores)
      fail(fmt::format("the name of a store has a place for a seed, {}, but there are no seeds",
                       kSeedPlace),
           "`seeds`", "give `seeds`");
    return;
  }
  for (size_t i = 0; i < seeds.size(); ++i)
    if (std::count(seeds.begin(), seeds.begin() + std::ptrdiff_t(i), seeds[i]) > 0)
      fail(fmt::format("the seed {} is given twice", seeds[i]), "`seeds`", "give each once");
  if (!work.stores && !work.draws)
    fail("nothing here depends on a seed: all results would be the same", "`seeds`",
         fmt::format("write {} in the names of stores that were extracted with these seeds{}",
                     kSeedPlace, work.hint));
}

}  // namespace fungi
