// SPDX-License-Identifier: Apache-2.0
// fungi cka STORE: linear CKA between every two blocks: how much of one the other already says.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {

Verb add_cka(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string store, features;
    ThreadsOption threads;
    bool json = false;
  };
  self = parent.add_subcommand("cka", "Similarity (linear CKA) between the blocks of a store");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Feature store")->required();
  self->add_option("--features", a->features,
                   "Blocks joined with +, e.g. embedding+kl; default: all");
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      const Store store = Store::open(a->store);
      Pool pool(a->threads.count());
      const auto [names, cka] = evaluate_cka(store, a->features, pool, ranks);
      nlohmann::json rows = nlohmann::json::array();
      std::vector<std::vector<std::string>> table;
      for (size_t i = 0; i < names.size(); ++i) {
        rows.push_back(std::vector<double>(cka.row(i), cka.row(i) + names.size()));
        table.push_back({names[i]});
        for (size_t j = 0; j < names.size(); ++j)
          table.back().push_back(fmt::format("{:.3f}", cka(i, j)));
      }
      if (a->json) {
        print_json({{"blocks", names}, {"cka", rows}});
      } else {
        std::vector<std::string> head{""};
        head.insert(head.end(), names.begin(), names.end());
        print_table(head, table);
      }
      return int(kOk);
    });
  };
}

}  // namespace fungi::app
