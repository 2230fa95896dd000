// SPDX-License-Identifier: Apache-2.0
// fungi cka STORE: linear CKA between every two blocks: how much of one the other already says.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string store, features;
  SeedsOption seeds;
  ThreadsOption threads;
  bool json = false;
};

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool, Comm* ranks) {
  const Store store = Store::open(store_path(a.store, seed));
  const auto [names, cka] = evaluate_cka(store, a.features, pool, ranks);
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < names.size(); ++i)
    rows.push_back(std::vector<double>(cka.row(i), cka.row(i) + names.size()));
  return {{"blocks", names}, {"cka", rows}};
}

// One block a line; of several seeds with the deviation.
void print(const nlohmann::json& names, const nlohmann::json& cka,
           const nlohmann::json* deviation) {
  std::vector<std::string> head{""};
  for (const auto& name : names) head.push_back(name);
  std::vector<std::vector<std::string>> table;
  for (size_t i = 0; i < names.size(); ++i) {
    table.push_back({names[i]});
    for (size_t j = 0; j < names.size(); ++j) {
      table.back().push_back(fmt::format("{:.3f}", cka[i][j].get<double>()));
      if (deviation)
        table.back().back() += fmt::format(" ± {:.3f}", (*deviation)[i][j].get<double>());
    }
  }
  print_table(head, table);
}

}  // namespace

Verb add_cka(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("cka", "Similarity (linear CKA) between the blocks of a store");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Feature store")->required();
  self->add_option("--features", a->features,
                   "Blocks joined with +, e.g. embedding+kl; default: all");
  a->seeds.add_to(*self);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      Pool pool(a->threads.count());
      return a->seeds.run(
          {.stores = names_seed(a->store)}, {"blocks"}, {{"cka", ""}}, a->json,
          [&](const uint32_t* seed) { return answer(*a, seed, pool, ranks); },
          [](const nlohmann::json& one) { print(one["blocks"], one["cka"], nullptr); },
          [](const nlohmann::json& all) {
            print(all["blocks"], all["mean"]["cka"], &all["deviation"]["cka"]);
          });
    });
  };
}

}  // namespace fungi::app
