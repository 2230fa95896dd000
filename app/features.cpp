// SPDX-License-Identifier: Apache-2.0
#include "app/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/progress.h"
#include "app/words.h"
#include "fungi/comm/comm.h"
#include "fungi/evaluate/layers.h"

namespace fungi::app {

void add_reduce(CLI::App& verb, std::string& reduce) {
  verb.add_option("--reduce", reduce,
                  "How columns are shrunk to --pca: pca, or by a random matrix: sign, gaussian, "
                  "sparse")
      ->capture_default_str()
      ->check(CLI::IsMember({"pca", "sign", "gaussian", "sparse"}));
}

void FeatureOptions::add_to(CLI::App& verb, bool with_pca) {
  auto* one =
      verb.add_option("--features", features,
                      "Blocks joined with +, e.g. embedding+kl; default: one more at a time");
  verb.add_flag("--all-combinations", all_combinations, "Every combination of blocks")
      ->excludes(one);
  if (with_pca)
    verb.add_option("--pca", pca, "Shrink to so many columns where the rows allow it; 0 = never")
        ->capture_default_str();
  if (with_pca) add_reduce(verb, reduce);
  seeds.add_to(verb);
  memory.add_to(verb);
  threads.add_to(verb);
  verb.add_flag("--json", json, "Print JSON");
}

void FeatureOptions::add_exact_gradients(CLI::App& verb) {
  auto* flag = verb.add_flag("--exact-gradients", exact_gradients,
                             "Compare whole gradients instead of projected ones; needs stores "
                             "extracted with --keep-factors");
  // A PCA of 0 columns means none, which is what exact gradients have.
  verb.parse_complete_callback([this, &verb, flag] {
    if (flag->count() == 0) return;
    if (verb.get_option("--pca")->count() > 0 && pca > 0)
      throw CLI::ValidationError(
          "--pca",
          "whole gradients are compared without ever being columns, so there is nothing to shrink: "
          "leave out --pca or --exact-gradients");
    if (verb.get_option("--reduce")->count() > 0)
      throw CLI::ValidationError("--reduce",
                                 "whole gradients are never columns, so there is nothing to "
                                 "shrink: leave out --reduce or --exact-gradients");
    if (memory.bytes > 0)
      throw CLI::ValidationError("--memory",
                                 "whole gradients are never rows, so none go to a scratch file: "
                                 "leave out --memory or --exact-gradients");
    pca = 0;
  });
}

SeededWork FeatureOptions::seeded(const std::vector<std::string>& stores, bool draws,
                                  const char* hint) const {
  return {.stores = std::any_of(stores.begin(), stores.end(), names_seed),
          .draws = draws || (reduce != "pca" && pca > 0),
          .hint = hint};
}

void FeatureOptions::tell_reduction(nlohmann::json& one, bool reduced) const {
  if (reduce == "pca") return;
  one["reduce"] = reduce;
  one["reduced"] = reduced;
}

CombinationOptions FeatureOptions::combinations(const std::string& label,
                                                const uint32_t* seed) const {
  struct Line {
    std::string features;
    std::function<void(size_t, size_t)> progress = {};
  };
  const auto line = std::make_shared<Line>();
  const bool speaks = !ranks || ranks->first();
  return {.features = features,
          .combine = all_combinations ? Combine::all : Combine::steps,
          .rows = {.pca = pca,
                   .memory_limit = memory.limit(),
                   .reduce = parse_reduce(reduce),
                   .seed = seed ? *seed : RowOptions{}.seed,
                   .ranks = ranks},
          .note =
              [line, speaks](const std::string& note) {
                line->progress = {};
                if (speaks) say("note: {}\n", worded(note));
              },
          .progress =
              [line, label, quiet = json || !speaks](const std::string& of, size_t done,
                                                     size_t total) {
                if (!line->progress || line->features != of) {
                  line->progress = {};  // the one before ends first
                  *line = {of, Progress::of_long_work(label + " " + of, quiet)};
                }
                line->progress(done, total);
              }};
}

void print_table(const std::vector<std::string>& head,
                 const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(head.size());
  for (size_t c = 0; c < head.size(); ++c) {
    width[c] = head[c].size();
    for (const auto& row : rows) width[c] = std::max(width[c], row[c].size());
  }
  auto line = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); ++c)
      if (c == 0 || (head[c] == "text" && c + 1 == cells.size()))
        fmt::print("{}{:<{}}", c ? "  " : "", shown(cells[c]), c ? 0 : width[c]);
      else
        fmt::print("  {:>{}}", shown(cells[c]), width[c]);
    fmt::print("\n");
  };
  line(head);
  for (const auto& row : rows) line(row);
}

void print_layer_curves(const std::vector<std::pair<std::string, double>>& accuracies) {
  constexpr const char* kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<LayerCurve> curves = layer_curves(accuracies);
  std::erase_if(curves, [](const LayerCurve& c) { return c.blocks.size() < 2; });
  if (curves.empty()) return;
  double low = 1, high = 0;  // of all: their heights can be compared
  for (const LayerCurve& c : curves)
    for (const double value : c.values) low = std::min(low, value), high = std::max(high, value);
  std::vector<std::vector<std::string>> table;
  for (const LayerCurve& c : curves) {
    std::string drawing;
    for (const double value : c.values) {
      const double height = high > low ? (value - low) / (high - low) : 1;
      drawing += kLevels[std::min<size_t>(7, size_t(height * 8))];
    }
    const auto best = std::max_element(c.values.begin(), c.values.end());
    const size_t at = c.blocks[size_t(best - c.values.begin())];
    table.push_back({(c.beside.empty() ? "" : c.beside + "+") + c.objective + " " + c.part,
                     fmt::format("{}-{}", c.blocks.front(), c.blocks.back()), percent(*best),
                     std::to_string(at), drawing});
  }
  fmt::print("\n");
  print_table({"across layers", "blocks", "best %", "in block", "from first to last"}, table);
}

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

}  // namespace fungi::app
