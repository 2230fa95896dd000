// SPDX-License-Identifier: Apache-2.0
// fungi kmeans STORE: how well clusters of the rows agree with their classes (SPEC 5.4).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "fungi/evaluate/clustering.h"

namespace fungi::app {

Verb add_kmeans(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string store;
    KMeansOptions kmeans;
    FeatureOptions features;
  };
  self = parent.add_subcommand("kmeans",
                               "Cluster the rows of a store and match clusters with classes");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Store with labels")->required();
  self->add_option("--seed", a->kmeans.seed, "Seed of the first centres")->capture_default_str();
  a->features.add_to(*self);
  return [a] {
    const Store store = Store::open(a->store);
    require_labels(store);
    Pool pool(a->features.threads.count());
    nlohmann::json list = nlohmann::json::array();
    std::vector<std::vector<std::string>> table;
    for (const std::string& features : a->features.combinations(store)) {
      bool shrunk = false;
      const LoadedRows set = load_rows(store, features, a->features, pool, shrunk);
      a->kmeans.progress = Progress::of_long_work("kmeans " + features, a->features.json);
      const ClusteringScore score = evaluate_clustering(set.features, set.labels, a->kmeans, pool);
      a->kmeans.progress = {};  // ends its line
      list.push_back({{"features", features},
                      {"overlap", score.overlap.accuracy},
                      {"clusters", score.overlap.cluster_sizes.size()},
                      {"rows", set.features.rows()},
                      {"pca", a->features.pca},
                      {"pca_applied", shrunk}});
      table.push_back({features, std::to_string(score.overlap.cluster_sizes.size()),
                       percent(score.overlap.accuracy)});
    }
    if (a->features.json)
      print_json(list);
    else
      print_table({"features", "clusters", "overlap %"}, table);
    return int(kOk);
  };
}

}  // namespace fungi::app
