// SPDX-License-Identifier: Apache-2.0
// What sentence-transformers keeps beside a text encoder: modules.json lists what comes after it, a
// folder per module says how, and config_sentence_transformers.json has the prompts. They decide
// how the vectors are pooled, so that they are those that users of the model know.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "fungi/backbone/names.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using nlohmann::json;

constexpr const char* kState =
    "state `stated_facts[pooling]=mean_all` (or first, mean_sqrt, max_all) to pool like that and "
    "leave out what the file lists";

struct Module {
  std::string type, path;  // the last word of the type; the folder, with a slash at its end
};

std::string text_at(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// In the order in which they are run. Older files keep the encoder in a folder of its own, and the
// list beside that.
std::vector<Module> list_modules(const Checkpoint& checkpoint, std::string& root) {
  std::string text = checkpoint.beside("modules.json");
  const bool above = text.empty();
  if (above) text = checkpoint.beside("../modules.json");
  if (text.empty()) return {};
  const json all = parse_json(text);
  if (!all.is_array() || all.empty() || !all[0].is_object())
    fail("modules.json: expected a list of modules, found something else or a part of one",
         checkpoint.path(), "get the file again, or move it away and state the pooling");
  std::vector<Module> modules;
  for (const json& entry : all) {
    const std::string type = text_at(entry, "type"), path = text_at(entry, "path");
    modules.push_back({type.substr(type.rfind('.') + 1), path.empty() ? "" : path + "/"});
  }
  root = above ? "../" : "";
  const std::string folder = std::filesystem::path(checkpoint.path()).parent_path().filename();
  return above && modules[0].path != folder + "/" ? std::vector<Module>() : modules;
}

[[noreturn]] void refuse(const Checkpoint& checkpoint, const std::string& file,
                         const std::string& what) {
  fail(fmt::format("{}: {}", file, what), checkpoint.path(), kState);
}

// The modes that are switched on, in the words of newer files.
std::vector<std::string> modes_of(const json& config) {
  std::vector<std::string> modes;
  if (const auto at = config.find("pooling_mode"); at != config.end()) {
    if (!at->is_array()) return {at->is_string() ? at->get<std::string>() : at->dump()};
    for (const json& mode : *at)
      modes.push_back(mode.is_string() ? mode.get<std::string>() : mode.dump());
    return modes;
  }
  for (const auto& [key, word] : {std::pair("pooling_mode_cls_token", "cls"),
                                  {"pooling_mode_max_tokens", "max"},
                                  {"pooling_mode_mean_tokens", "mean"},
                                  {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                  {"pooling_mode_weightedmean_tokens", "weightedmean"},
                                  {"pooling_mode_lasttoken", "lasttoken"}})
    if (const auto at = config.find(key); at != config.end() && at->is_boolean() && at->get<bool>())
      modes.push_back(word);
  if (modes.empty()) modes.push_back("mean");  // so there
  return modes;
}

void read_pooling(const NameReader& names, const std::string& folder, Architecture& a,
                  std::vector<std::string>& notes) {
  const Checkpoint& checkpoint = names.checkpoint();
  const std::string file = folder + "config.json";
  const json config = json_beside(checkpoint, file.c_str());
  if (config.is_null()) {
    a.pooling = Pooling::mean_all;
    notes.push_back(fmt::format(
        "modules.json lists a pooling, but {} is not there: the mean over all tokens is assumed, "
        "which sentence-transformers takes where nothing else is said. Get the file, or state "
        "`stated_facts[pooling]`",
        file));
    return;
  }
  const std::vector<std::string> modes = modes_of(config);
  if (modes.size() != 1)
    refuse(checkpoint, file,
           fmt::format("several poolings side by side ({}), expected one",
                       printable(fmt::format("{}", fmt::join(modes, ", ")))));
  const std::map<std::string, Pooling> known{{"cls", Pooling::first},
                                             {"mean", Pooling::mean_all},
                                             {"mean_sqrt_len_tokens", Pooling::mean_sqrt},
                                             {"max", Pooling::max_all}};
  const auto found = known.find(modes[0]);
  if (found == known.end())
    refuse(checkpoint, file,
           fmt::format("the pooling '{}' is not known here, expected cls, mean, "
                       "mean_sqrt_len_tokens or max",
                       printable(modes[0])));
  a.pooling = found->second;
  for (const char* key : {"word_embedding_dimension", "embedding_dimension"})
    if (const auto width = config.find(key);
        width != config.end() && width->is_number() && *width != a.width)
      refuse(checkpoint, file,
             fmt::format("{} is {}, but the encoder's width is {}", key, width->dump(), a.width));
  if (const auto prompt = config.find("include_prompt");
      prompt != config.end() && prompt->is_boolean() && !prompt->get<bool>())
    notes.push_back(
        "sentence-transformers leaves the tokens of a prompt out of this model's pooling; here "
        "those of a `prefix` are pooled like all others");
}

// What its users put before texts: it is theirs to say.
void note_prompts(const Checkpoint& checkpoint, const std::string& root,
                  std::vector<std::string>& notes) {
  const std::string file = root + "config_sentence_transformers.json";
  const json config = json_beside(checkpoint, file.c_str());
  if (config.is_null() || !config.contains("prompts") || !config["prompts"].is_object()) return;
  std::vector<std::string> prompts;
  for (const auto& [name, text] : config["prompts"].items())
    if (text.is_string() && !text.get<std::string>().empty())
      prompts.push_back(
          fmt::format("'{}' ({})", printable(text.get<std::string>()), printable(name)));
  if (prompts.empty()) return;
  const std::string usual = text_at(config, "default_prompt_name");
  notes.push_back(fmt::format(
      "this model knows prompts: {}{}. None is put before the texts unless `prefix` says so",
      fmt::join(prompts, ", "),
      usual.empty() ? ""
                    : fmt::format("; sentence-transformers puts that of '{}' before all texts",
                                  printable(usual))));
}

}  // namespace

void read_sentence_modules(const NameReader& names, Architecture& a,
                           std::vector<std::string>& notes) {
  const Checkpoint& checkpoint = names.checkpoint();
  std::string root;
  const std::vector<Module> modules = list_modules(checkpoint, root);
  if (modules.empty()) return;
  note_prompts(checkpoint, root, notes);
  if (names.stated("pooling")) {
    notes.push_back(fmt::format(
        "the pooling '{}' is stated: modules.json beside the model, which may say another one, is "
        "not asked",
        to_string(a.pooling)));
    return;
  }
  if (modules[0].type != "Transformer")
    refuse(
        checkpoint, "modules.json",
        fmt::format("the first module is '{}', expected Transformer", printable(modules[0].type)));
  bool pooled = false;
  for (size_t i = 1; i < modules.size(); ++i) {
    const auto& [type, path] = modules[i];
    if (type == "Pooling" && !pooled) {
      read_pooling(names, root + path, a, notes);
      pooled = true;
    } else if (type == "Normalize" && pooled) {
      a.unit_embedding = true;
    } else if (type != "Dropout") {  // which does nothing outside of training
      refuse(checkpoint, "modules.json",
             fmt::format("lists the module '{}' {}, expected Pooling, then Normalize or nothing",
                         printable(type), pooled ? "after the pooling" : "before a pooling"));
    }
  }
  if (!pooled) refuse(checkpoint, "modules.json", "lists no module Pooling");
}

}  // namespace fungi
