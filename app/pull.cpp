// SPDX-License-Identifier: Apache-2.0
// fungi pull ORG/NAME: a model from a hub, once, for -m hf:ORG/NAME.
#include "fungi/hub/pull.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/progress.h"
#include "app/words.h"
#include "fungi/store/text.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string model;
  PullOptions options;
  bool json = false;
};

nlohmann::json to_json(const PullResult& result, const Notes& notes) {
  nlohmann::json out{{"model", result.model},
                     {"revision", result.revision},
                     {"commit", result.commit},
                     {"path", store::to_json_string(result.path.string())},
                     {"bytes", result.bytes},
                     {"fetched", result.fetched},
                     {"files", nlohmann::json::array()},
                     {"complete", !result.stopped},
                     {"notes", notes.list}};
  for (const PulledFile& file : result.files)
    out["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"from", to_string(file.from)}});
  return out;
}

int run(const Arguments& a) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  Notes notes{.shown = !a.json};
  PullOptions options = a.options;
  options.stop = &stop;
  options.note = [&](const std::string& note) { notes.add(note); };
  PullResult result;
  {
    Progress progress("pull", a.json);
    options.progress = [&](const std::string& file, size_t done, size_t total) {
      progress.turn_to(shown(file), "bytes");
      progress.update(done, total);
    };
    result = pull(a.model, options);
  }
  if (a.json) print_json(to_json(result, notes));
  if (result.stopped) {
    if (!a.json) say("interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  if (a.json) return kOk;
  for (const PulledFile& file : result.files)
    fmt::print("{:<40} {:>9}  {}\n", shown(file.name), human_bytes(double(file.bytes)),
               file.from == PulledFile::From::hub     ? "fetched"
               : file.from == PulledFile::From::cache ? "taken from another folder of this machine"
                                                      : "was there");
  fmt::print("{}\nuse it with -m hf:{}{}\n", shown(result.path.string()), result.model,
             result.revision == "main" ? "" : "@" + result.revision);
  return kOk;
}

}  // namespace

Verb add_pull(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("pull", "Fetch a model from a hub; the one verb that does so");
  auto a = std::make_shared<Arguments>();
  self->add_option("model", a->model, "ORG/NAME, or ORG/NAME@REVISION: a branch, tag or commit")
      ->required();
  auto* endpoint = self->add_option(
      "--endpoint", a->options.endpoint,
      "The hub, or a mirror of it; default: HF_ENDPOINT, or the hub's own address");
  self->add_option("--weights", a->options.weights,
                   "Which file of weights; default: safetensors first, full precision");
  auto* offline =
      self->add_flag("--offline", a->options.offline, "Ask no network: only what this machine has");
  endpoint->excludes(offline);
  self->add_option("--tries", a->options.tries, "In a row without a byte, with growing waits")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--timeout", a->options.timeout, "Seconds of silence that end a try")
      ->capture_default_str()
      ->check(positive_number());
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
