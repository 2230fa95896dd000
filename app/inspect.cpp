// SPDX-License-Identifier: Apache-2.0
// fungi inspect FILE: what a checkpoint is and how it would be run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/words.h"
#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/hub/pull.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string file;
  FactsOption facts;
  bool json = false, tensors = false;
};

nlohmann::json start_json(const Checkpoint& checkpoint, bool tensors) {
  nlohmann::json out{{"path", checkpoint.path()},
                     {"format", checkpoint.format()},
                     {"tensors", checkpoint.tensors().size()}};
  if (!tensors) return out;
  out["tensor_list"] = nlohmann::json::array();
  for (const TensorInfo& t : checkpoint.tensors())
    out["tensor_list"].push_back(
        {{"name", t.name}, {"type", to_string(t.type)}, {"shape", t.shape}});
  return out;
}

int run(const Arguments& args) {
  const Checkpoint checkpoint = Checkpoint::open(pulled_model(args.file));
  if (args.tensors && !args.json)
    for (const TensorInfo& t : checkpoint.tensors())
      fmt::print("{:<60} {:>5} {}\n", printable(t.name), to_string(t.type), t.shape_text());
  Architecture a;
  std::vector<std::string> notes;
  try {
    a = read_architecture(checkpoint, args.facts.read());
    notes = read_notes(checkpoint, args.facts.read());
  } catch (const Error&) {  // the list is what helps with a file that is not understood
    if (args.json && args.tensors) print_json(start_json(checkpoint, true));
    throw;
  }
  for (std::string& note : notes) note = worded(note);
  auto facts = describe(a);
  for (auto& [name, value] : facts) value = worded(value);
  if (a.family.ends_with("clip") && !a.head)
    facts.emplace_back("projection",
                       "none found: embeddings are those of the tower, before any projection");
  const std::string layer = fmt::format("blocks.{}.attn.proj", a.depth - 1);
  if (args.json) {
    nlohmann::json out = start_json(checkpoint, args.tensors);
    for (const auto& [name, value] : facts) out["architecture"][name] = value;
    out["default_layer"] = layer;
    out["notes"] = notes;
    print_json(out);
    return kOk;
  }
  fmt::print("{:<18}{}\n{:<18}{}\n{:<18}{}\n", "path", shown(checkpoint.path()), "format",
             checkpoint.format(), "tensors", checkpoint.tensors().size());
  for (const auto& [name, value] : facts) fmt::print("{:<18}{}\n", name, shown(value));
  fmt::print("{:<18}{} ({} x {})\n", "default layer", layer, a.width,
             a.attention_width() + (a.linear_bias ? 1 : 0));
  for (const std::string& note : notes) fmt::print("{:<18}{}\n", "note", shown(note));
  return kOk;
}

}  // namespace

Verb add_inspect(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("inspect", "Say what a checkpoint is and how it would be run");
  auto args = std::make_shared<Arguments>();
  self->add_option("file", args->file, "Checkpoint file or folder, or hf:ORG/NAME")->required();
  args->facts.add_to(*self);
  self->add_flag("--tensors", args->tensors, "List every tensor");
  self->add_flag("--json", args->json, "Print JSON");
  return [args] { return run(*args); };
}

}  // namespace fungi::app
