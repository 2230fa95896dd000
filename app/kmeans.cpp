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

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool) {
  const Store store = Store::open(store_path(a.store, seed));
  KMeansProtocol protocol{.combinations = a.features.combinations("kmeans", seed),
                          .kmeans = a.kmeans};
  if (seed) protocol.kmeans.seed = *seed;
  const KMeansResult result =
      evaluate_kmeans(store, protocol, pool, [](KMeansCombination& one) {
        one.score.kmeans.centres = {};
        one.score.kmeans.assignment = {};  // of every row
      });
  nlohmann::json list = nlohmann::json::array();
  for (const KMeansCombination& one : result.combinations) {
    const Overlap& overlap = one.score.overlap;
    list.push_back({{"features", one.features},
                    {"overlap", overlap.accuracy},
                    {"clusters", overlap.cluster_sizes.size()},
                    {"rows", result.rows},
                    {"pca", a.features.pca},
                    {"pca_applied", one.pca_applied}});
    a.features.tell_reduction(list.back(), one.reduced);
  }
  return list;
}

void print(const nlohmann::json& list) {
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& one : list)
    table.push_back({one["features"], one["clusters"].dump(), percent(one["overlap"])});
  print_table({"features", "clusters", "overlap %"}, table);
}

int run(const Arguments& a) {
  Pool pool(a.features.threads.count());
  return a.features.seeds.run(
      a.features.seeded({a.store}, true, ""), {"features", "clusters"}, {{"overlap", "overlap %"}},
      a.features.json, [&](const uint32_t* seed) { return answer(a, seed, pool); }, print);
}

}  // namespace

Verb add_kmeans(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("kmeans",
                               "Cluster the rows of a store and match clusters with classes");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Store with labels")->required();
  auto* seed = self->add_option("--seed", a->kmeans.seed, "Seed of the first centres")
                   ->capture_default_str();
  a->features.add_to(*self);
  self->get_option("--seeds")->excludes(seed);
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->features.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
