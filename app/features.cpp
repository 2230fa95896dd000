// SPDX-License-Identifier: Apache-2.0
#include "app/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/feature/comparable.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/retrieve/feature_index.h"

namespace fungi::app {

void FeatureOptions::add_to(CLI::App& verb, bool with_pca) {
  auto* one =
      verb.add_option("--features", features,
                      "Blocks joined with +, e.g. embedding+kl; default: one more at a time");
  verb.add_flag("--all-combinations", all_combinations, "Every combination of blocks")
      ->excludes(one);
  if (with_pca)
    verb.add_option("--pca", pca, "Shrink to so many columns where the rows allow it; 0 = never")
        ->capture_default_str();
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
    if (memory.bytes > 0)
      throw CLI::ValidationError("--memory",
                                 "whole gradients are never rows, so none go to a scratch file: "
                                 "leave out --memory or --exact-gradients");
    pca = 0;
  });
}

void require_outside(const Store& store, const std::filesystem::path& out) {
  std::error_code unknown;  // what cannot be looked at is elsewhere, or refused when it is written
  const auto whole = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  const auto own = whole(store.folder()), there = whole(out);
  if (std::mismatch(own.begin(), own.end(), there.begin(), there.end()).first == own.end())
    fail("the output would lie in the store itself", out.string(), "choose another folder");
  for (auto folder = there.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (is_store(folder) || is_index(folder))
      fail(fmt::format("the output would lie in a store or an index, {}", folder.string()),
           out.string(), "choose another folder");
}

std::vector<std::string> FeatureOptions::combinations(const Store& store) const {
  if (!features.empty()) return {features};
  const std::vector<std::string> blocks = feature_names(store.manifest().spec);
  std::vector<std::string> list;
  if (all_combinations) {
    if (blocks.size() > 10)
      fail(fmt::format("{} blocks have too many combinations", blocks.size()), "--all-combinations",
           "name one with --features");
    for (size_t mask = 1; mask < size_t{1} << blocks.size(); ++mask) {
      std::string name;
      for (size_t i = 0; i < blocks.size(); ++i)
        if (mask >> i & 1) name += (name.empty() ? "" : "+") + blocks[i];
      list.push_back(name);
    }
    return list;
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    list.push_back(i ? list.back() + "+" + blocks[i] : blocks[i]);
  return list;
}

void require_comparable(const Store& train, const Store& test, const std::string& features,
                        bool projected) {
  fungi::require_comparable(train.manifest(), test.manifest(), names_of(train.select(features)),
                            projected, test.folder().string(),
                            "extract it with --like " + train.folder().string());
}

LoadedRows load_rows(const Store& store, const std::string& features, const FeatureOptions& options,
                     Pool& pool, bool& shrunk) {
  const std::vector<StoreBlock> blocks = store.select(features);
  const std::optional<Pca> pca = fit_pca(store, blocks, options.pca, pool);
  shrunk = pca.has_value();
  return {store.ids(), store.labels(), store.classes(),
          fungi::load_rows(store, blocks, pca, options.memory_limit(), pool)};
}

TrainTest load_pair(const Store& train, const Store& test, const std::string& features,
                    const FeatureOptions& options, Pool& pool, const std::vector<size_t>& chosen) {
  require_comparable(train, test, features, true);
  const std::vector<StoreBlock> train_blocks = train.select(features),
                                test_blocks = test.select(features);
  TrainTest pair = load_pair_labels(train, test, chosen);
  const std::optional<Pca> pca = fit_pca(train, train_blocks, options.pca, pool, chosen);
  pair.shrunk = pca.has_value();
  pair.train.features =
      fungi::load_rows(train, train_blocks, pca, options.memory_limit(), pool, chosen);
  pair.test.features = fungi::load_rows(test, test_blocks, pca, options.memory_limit(), pool);
  return pair;
}

RankedRows load_ranked(const Store& database, const Store& queries, const std::string& features,
                       const RevisitedRows& chosen, const FeatureOptions& options, Pool& pool) {
  const std::vector<StoreBlock> blocks = database.select(features);
  const std::optional<Pca> pca = fit_pca(database, blocks, options.pca, pool, chosen.database);
  return {fungi::load_rows(database, blocks, pca, options.memory_limit(), pool, chosen.database),
          fungi::load_rows(queries, queries.select(features), pca, options.memory_limit(), pool,
                           chosen.queries),
          pca.has_value()};
}

TrainTest load_pair_labels(const Store& train, const Store& test,
                           const std::vector<size_t>& chosen) {
  require_labels(train);
  require_labels(test);
  TrainTest pair{{train.ids(), train.labels(), train.classes(), {}},
                 {test.ids(), align_labels(train.classes(), test), test.classes(), {}}};
  if (chosen.empty()) return pair;
  pair.train.labels = gather(train.labels(), chosen);
  pair.train.ids.clear();
  for (const size_t row : chosen) pair.train.ids.push_back(train.ids()[row]);
  return pair;
}

void say_unknown_classes(Labels train, Labels test) {
  if (const std::string note = note_unknown_classes(train, test); !note.empty())
    say("note: {}\n", note);
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
      if (c == 0)
        fmt::print("{:<{}}", shown(cells[c]), width[c]);
      else
        fmt::print("  {:>{}}", shown(cells[c]), width[c]);
    fmt::print("\n");
  };
  line(head);
  for (const auto& row : rows) line(row);
}

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

}  // namespace fungi::app
