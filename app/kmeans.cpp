// SPDX-License-Identifier: Apache-2.0
// fungi kmeans STORE: how well clusters of the rows agree with their classes (SPEC 5.4).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {

namespace {

struct Arguments {
  std::string store;
  KMeansOptions kmeans;
  FeatureOptions features;
};

int run(const Arguments& a) {
  const Store store = Store::open(a.store);
  Pool pool(a.features.threads.count());
  const KMeansResult result = evaluate_kmeans(
      store, {.combinations = a.features.combinations("kmeans"), .kmeans = a.kmeans}, pool,
      [](KMeansCombination& one) {
        one.score.kmeans.centres = {};
        one.score.kmeans.assignment = {};  // of every row
      });
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  for (const KMeansCombination& one : result.combinations) {
    const Overlap& overlap = one.score.overlap;
    list.push_back({{"features", one.features},
                    {"overlap", overlap.accuracy},
                    {"clusters", overlap.cluster_sizes.size()},
                    {"rows", result.rows},
                    {"pca", a.features.pca},
                    {"pca_applied", one.pca_applied}});
    table.push_back(
        {one.features, std::to_string(overlap.cluster_sizes.size()), percent(overlap.accuracy)});
  }
  if (a.features.json)
    print_json(list);
  else
    print_table({"features", "clusters", "overlap %"}, table);
  return kOk;
}

}  // namespace

Verb add_kmeans(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("kmeans",
                               "Cluster the rows of a store and match clusters with classes");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Store with labels")->required();
  self->add_option("--seed", a->kmeans.seed, "Seed of the first centres")->capture_default_str();
  a->features.add_to(*self);
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->features.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
