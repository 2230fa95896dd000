// SPDX-License-Identifier: Apache-2.0
// What decides about a number per second is this machine: it is measured anew each time.
#include <chrono>

#include "app/bench.h"
#include "app/reproduce_run.h"
#include "app/words.h"
#include "fungi/base/random.h"
#include "fungi/search/knn.h"

namespace fungi::app {
namespace {

constexpr size_t kColumns = 512, kNeighbours = 20;

Matrix<float> random_rows(size_t rows, std::string_view name) {
  Matrix<float> out(rows, kColumns);
  const RandomStream random(7, name);
  for (size_t i = 0; i < rows * kColumns; ++i) out.data()[i] = float(random.uniform(i) - 0.5);
  return out;
}

double rows_per_second(const RunOptions& options, Pool& pool) {
  const Matrix<float> database = random_rows(options.limit ? 2000 : 50000, "database"),
                      queries = random_rows(options.limit ? 200 : 5000, "queries");
  const auto start = std::chrono::steady_clock::now();
  knn(database, queries, kNeighbours, pool);
  return double(queries.rows()) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// "simclr_4" is what the table says of it, with its parameters.
std::vector<std::string> specification_of(const PaperTable& table, const std::string& features) {
  for (const std::string& objective : objectives_of(table))
    if (objective.substr(0, objective.find(':')) == features) return {objective};
  return {};  // the embedding
}

}  // namespace

RunResult run_speed(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                    const RunOptions& options, Pool& pool) {
  RunResult result;
  const double seconds = options.limit ? 0.2 : 3;
  for (const PaperCell& c : cells_of(table)) {
    if (c.data != kMachine || c.backbone != facts.key) continue;
    try {
      const double rate =
          c.setting == "rows/s"
              ? rows_per_second(options, pool)
              : bench_features(backbone, specification_of(table, c.features), options.preset,
                               seconds, pool)
                    .samples_per_second;
      result.values[{c.setting, c.features}] = {rate};
    } catch (const Error& e) {
      result.reasons[{c.setting, c.features}] = worded(e).what();
    }
  }
  return result;
}

}  // namespace fungi::app
