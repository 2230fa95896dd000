// SPDX-License-Identifier: Apache-2.0
// fungi inspect FILE: what a checkpoint is and how it would be run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "fungi/backbone/tensors.h"

namespace fungi::app {

Verb add_inspect(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string file;
    std::vector<std::string> facts;
    bool json = false, tensors = false;
  };
  self = parent.add_subcommand("inspect", "Say what a checkpoint is and how it would be run");
  auto a = std::make_shared<Arguments>();
  self->add_option("file", a->file, "Checkpoint file or folder")->required();
  self->add_option("--set", a->facts, "State a fact the file does not hold, key=value");
  self->add_flag("--tensors", a->tensors, "List every tensor");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    const Checkpoint checkpoint = Checkpoint::open(a->file);
    if (a->tensors && !a->json)
      for (const TensorInfo& t : checkpoint.tensors())
        fmt::print("{:<60} {:>5} {}\n", t.name, to_string(t.type), t.shape_text());
    ModelOptions options;
    options.facts = a->facts;
    const Reading reading = read_names(checkpoint, options.backbone().stated_facts);
    const auto facts = describe(reading.architecture);
    if (a->json) {
      nlohmann::json out{{"path", checkpoint.path()},
                         {"format", checkpoint.format()},
                         {"tensors", checkpoint.tensors().size()}};
      for (const auto& [name, value] : facts) out["architecture"][name] = value;
      if (a->tensors)
        for (const TensorInfo& t : checkpoint.tensors())
          out["tensor_list"].push_back(
              {{"name", t.name}, {"type", to_string(t.type)}, {"shape", t.shape}});
      fmt::print("{}\n", out.dump(2));
      return kOk;
    }
    fmt::print("{:<18}{}\n{:<18}{}\n{:<18}{}\n", "path", checkpoint.path(), "format",
               checkpoint.format(), "tensors", checkpoint.tensors().size());
    for (const auto& [name, value] : facts) fmt::print("{:<18}{}\n", name, value);
    fmt::print("{:<18}blocks.{}.attn.proj ({} x {})\n", "default layer",
               reading.architecture.depth - 1, reading.architecture.width,
               reading.architecture.attention_width() + (reading.architecture.linear_bias ? 1 : 0));
    return kOk;
  };
}

}  // namespace fungi::app
