// SPDX-License-Identifier: Apache-2.0
// fungi cka STORE: linear CKA between every two blocks: how much of one the other already says.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"

namespace fungi::app {

Verb add_cka(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string store, features;
    SeedsOption seeds;
    ThreadsOption threads;
    bool json = false;
  };
  self = parent.add_subcommand("cka", "Similarity (linear CKA) between the blocks of a store");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Feature store")->required();
  self->add_option("--features", a->features,
                   "Blocks joined with +, e.g. embedding+kl; default: all");
  a->seeds.add_to(*self);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    Pool pool(a->threads.count());
    const auto answer = [&](const uint32_t* seed) {
      const auto [names, cka] =
          evaluate_cka(Store::open(store_path(a->store, seed)), a->features, pool);
      nlohmann::json rows = nlohmann::json::array();
      for (size_t i = 0; i < names.size(); ++i)
        rows.push_back(std::vector<double>(cka.row(i), cka.row(i) + names.size()));
      return nlohmann::json::array({{{"blocks", names}, {"cka", rows}}});
    };
    const SeededWork work{.stores = names_seed(a->store)};
    if (!a->seeds.seeds.empty())
      return a->seeds.run(work, {"blocks"}, {{"cka", "CKA"}}, a->json, answer, {});
    check_seeds({}, work);
    const nlohmann::json one = answer(nullptr)[0];
    if (a->json) {
      print_json(one);
      return int(kOk);
    }
    std::vector<std::string> head{""};
    std::vector<std::vector<std::string>> table;
    for (size_t i = 0; i < one["blocks"].size(); ++i) {
      head.push_back(one["blocks"][i]);
      table.push_back({one["blocks"][i]});
      for (const nlohmann::json& value : one["cka"][i])
        table.back().push_back(fmt::format("{:.3f}", value.get<double>()));
    }
    print_table(head, table);
    return int(kOk);
  };
}

}  // namespace fungi::app
