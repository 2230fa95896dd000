// SPDX-License-Identifier: Apache-2.0
#include "app/features.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fungi/feature/kept_factors.h"
#include "fungi/feature/pca.h"

namespace fungi::app {

void FeatureOptions::add_to(CLI::App& verb, bool with_pca) {
  auto* one = verb.add_option("--features", features, "Blocks joined with +, e.g. embedding+kl; default: one more at a time");
  verb.add_flag("--all-combinations", all_combinations, "Every combination of blocks")->excludes(one);
  if (with_pca) verb.add_option("--pca", pca, "Shrink to so many columns where the rows allow it; 0 = never")->capture_default_str();
  verb.add_option("-j,--threads", threads, "Threads; 0 = physical cores")->capture_default_str()->check(CLI::Range(0u, 1024u));
  verb.add_flag("--json", json, "Print JSON");
}

std::vector<std::string> FeatureOptions::combinations(const Store& store) const {
  if (!features.empty()) return {features};
  const std::vector<std::string> blocks = feature_names(store.manifest().spec);
  std::vector<std::string> list;
  if (all_combinations) {
    if (blocks.size() > 10) fail(fmt::format("{} blocks have too many combinations", blocks.size()), "--all-combinations", "name one with --features");
    for (size_t mask = 1; mask < size_t{1} << blocks.size(); ++mask) {
      std::string name;
      for (size_t i = 0; i < blocks.size(); ++i)
        if (mask >> i & 1) name += (name.empty() ? "" : "+") + blocks[i];
      list.push_back(name);
    }
    return list;
  }
  for (size_t i = 0; i < blocks.size(); ++i) list.push_back(i ? list.back() + "+" + blocks[i] : blocks[i]);
  return list;
}

namespace {

// Gradients can be compared only when the same heads and the same projection made them.
void require_same_projection(const Store& train, const Store& test) {
  const auto made_by = [](const Store& store) {
    const auto settings = nlohmann::json::parse(store.manifest().spec.settings);
    nlohmann::json facts{{"seed", settings.value("seed", nlohmann::json())}, {"projection", settings.value("projection", nlohmann::json())}};
    return facts.dump();
  };
  if (const std::string expected = made_by(train), found = made_by(test); expected != found)
    fail(fmt::format("the gradients were not projected like those of {}: expected {}, found {}", train.folder().string(), expected, found), test.folder().string(),
         "extract or project both stores with the same options");
}

}  // namespace

TrainTest load_pair(const Store& train, const Store& test, const std::string& features) {
  if (features != "embedding") require_same_projection(train, test);
  TrainTest pair{train.load(features), test.load(features)};
  if (pair.train.features.cols() != pair.test.features.cols())
    fail(fmt::format("the training rows have {} columns, the test rows {}", pair.train.features.cols(), pair.test.features.cols()), test.folder().string(),
         "extract the test split with --like " + train.folder().string());
  pair.test.labels = align_labels(pair.train.classes, pair.test);
  return pair;
}

bool apply_pca(Matrix<float>& train, Matrix<float>* test, size_t dim, Pool& pool) {
  if (!Pca::applies(dim, train.rows(), train.cols())) return false;
  const Pca pca = Pca::fit(train, dim, pool);
  train = pca.transform(train, pool);
  if (test) *test = pca.transform(*test, pool);
  return true;
}

void print_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(head.size());
  for (size_t c = 0; c < head.size(); ++c) {
    width[c] = head[c].size();
    for (const auto& row : rows) width[c] = std::max(width[c], row[c].size());
  }
  auto line = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); ++c)
      if (c == 0) fmt::print("{:<{}}", cells[c], width[c]);
      else fmt::print("  {:>{}}", cells[c], width[c]);
    fmt::print("\n");
  };
  line(head);
  for (const auto& row : rows) line(row);
}

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

}  // namespace fungi::app
