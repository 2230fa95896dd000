// SPDX-License-Identifier: Apache-2.0
// fungi models: the families of backbones this program reads.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/words.h"

namespace fungi::app {

Verb add_models(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("models", "List the families of backbones that can be read");
  auto json = std::make_shared<bool>(false);
  self->add_flag("--json", *json, "Print JSON");
  return [json] {
    if (*json) {
      nlohmann::json list = nlohmann::json::array();
      for (const FamilyFacts& f : families())
        list.push_back({{"family", f.name},
                        {"dialects", f.dialects},
                        {"examples", f.examples},
                        {"notes", worded(f.notes)}});
      print_json(list);
      return kOk;
    }
    fmt::print("{:<16}{:<50}{}\n", "family", "models", "tensor names of");
    for (const FamilyFacts& f : families())
      fmt::print("{:<16}{:<50}{}\n{:<16}{}\n", f.name, f.examples, f.dialects, "", worded(f.notes));
    return kOk;
  };
}

}  // namespace fungi::app
