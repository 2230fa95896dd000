// SPDX-License-Identifier: Apache-2.0
// fungi bench --presets: what the choice of a preset does to the rate of whole features.
#include <nlohmann/json.hpp>

#include "app/bench.h"
#include "fungi/feature/extractor.h"

namespace fungi::app {
namespace {

struct Measured {
  std::string preset, precision;
  BenchRate rate;
};

Measured measure(const BenchArguments& args, const std::string& preset, Notes& notes, Pool& pool) {
  ExtractorOptions looks;
  looks.objectives = objective_list(args.objectives);
  looks.preset = parse_preset(preset);
  const Backbone backbone =
      open_to_bench(args.model, backbone_for(looks, args.model.backbone()), pool);
  if (notes.list.empty()) notes.add(backbone.notes());
  return {preset, to_string(*backbone.options().precision),
          bench_features(backbone, looks.objectives, looks.preset, args.seconds, pool)};
}

}  // namespace

int bench_presets(const BenchArguments& args) {
  Pool pool(args.model.threads.count());
  Notes notes{.shown = !args.json};
  std::vector<Measured> all;
  for (const std::string& preset : args.presets) all.push_back(measure(args, preset, notes, pool));
  const BenchRate& first = all[0].rate;
  const auto ratio = [&](const Measured& m) {
    return m.rate.samples_per_second / first.samples_per_second;
  };
  const auto processor_ratio = [&](const Measured& m) {
    return m.rate.samples_per_processor_second / first.samples_per_processor_second;
  };
  if (args.json) {
    nlohmann::json presets = nlohmann::json::array();
    for (const Measured& m : all)
      presets.push_back({{"preset", m.preset},
                         {"precision", m.precision},
                         {"views_per_sample", m.rate.views},
                         {"gflop_per_sample", m.rate.gflop},
                         {"samples_per_second", m.rate.samples_per_second},
                         {"samples_per_processor_second", m.rate.samples_per_processor_second},
                         {"ratio", ratio(m)},
                         {"processor_ratio", processor_ratio(m)}});
    print_json({{"model", args.model.model},
                {"objectives", objective_list(args.objectives)},
                {"threads", pool.threads()},
                {"presets", presets},
                {"notes", notes.list}});
    return kOk;
  }
  fmt::print("{}, {} threads, features embedding", shown(args.model.model), pool.threads());
  for (const std::string& objective : objective_list(args.objectives))
    fmt::print("+{}", shown(objective));
  fmt::print("\n{:<10}{:<11}{:>7}{:>15}{:>12}{:>8}{:>18}\n", "preset", "precision", "views",
             "GFLOP/sample", "samples/s", "ratio", "of processor time");
  for (const Measured& m : all)
    fmt::print("{:<10}{:<11}{:>7}{:>15.1f}{:>12.2f}{:>7.2f}x{:>17.2f}x\n", m.preset, m.precision,
               m.rate.views, m.rate.gflop, m.rate.samples_per_second, ratio(m),
               processor_ratio(m));
  return kOk;
}

}  // namespace fungi::app
