// SPDX-License-Identifier: Apache-2.0
// Whether two stores, or a store and a command, mean the same features; and if not, the first
// setting in which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fungi/base/error.h"
#include "fungi/store/manifest.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

using store::Json;

// One place where two JSON values differ; null text stands for "not there".
struct Difference {
  std::string path, expected, found;
};

std::optional<Difference> first_difference(const Json& expected, const Json& found,
                                           const std::string& path) {
  if (expected.is_object() && found.is_object()) {
    auto inside = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& [key, value] : expected.items()) {
      if (!found.contains(key)) return Difference{inside(key), store::dump(value), "nothing"};
      if (auto inner = first_difference(value, found[key], inside(key))) return inner;
    }
    for (const auto& [key, value] : found.items()) {
      if (!expected.contains(key)) return Difference{inside(key), "nothing", store::dump(value)};
    }
    return std::nullopt;
  }
  if (expected.is_array() && found.is_array() && expected.size() == found.size()) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string inside = fmt::format("{}[{}]", path, i);
      if (auto inner = first_difference(expected[i], found[i], inside)) return inner;
    }
    return std::nullopt;
  }
  if (expected == found) return std::nullopt;
  return Difference{path, store::dump(expected), store::dump(found)};
}

// The network as it was run: the file, and the facts it came to. They may come from the file, from
// config.json or from the user, which makes no difference; what only explains them is left out.
Json network(const StoreSpec& spec) {
  Json facts = store::parse_object(spec.architecture, "architecture");
  for (const char* key : {"family", "dialect", "heads_from", "parameters", "preprocess"})
    facts.erase(key);
  facts["sha256"] = spec.model_sha256;
  return facts;
}

Json settings_of(const StoreSpec& spec) {
  Json settings = store::parse_object(spec.settings, "settings");
  settings.erase("stated");  // network() has what became of it
  return settings;
}

// The part of a spec that decides what a row holds.
Json identity(const StoreSpec& spec) {
  Json blocks = Json::object();
  for (const StoreBlock& block : spec.blocks) blocks[block.name] = block.width;
  return {{"pipeline", spec.pipeline},    {"precision", spec.precision},
          {"model", network(spec)},       {"settings", settings_of(spec)},
          {"type", to_string(spec.type)}, {"blocks", std::move(blocks)}};
}

// The part of it that decides what the given blocks hold. How many digits are kept is no other
// treatment, nor is what happens to files that are cut off.
Json identity_of_blocks(const StoreManifest& manifest, const std::vector<std::string>& blocks,
                        bool projected) {
  const StoreSpec& spec = manifest.spec;
  Json settings = settings_of(spec), widths = Json::object(), objectives = Json::object(),
       state = Json::object();
  const Json all = settings.value("objectives", Json::object());
  bool gradients = false;
  for (const std::string& name : blocks) {
    const bool gradient = name != "embedding";
    const std::string objective(factors_of(name).empty() ? name : factors_of(name));
    gradients = gradients || gradient;
    if (const StoreBlock* block = find_block(spec.blocks, name); block && (projected || !gradient))
      widths[name] = block->width;
    if (all.contains(objective)) objectives[objective] = all[objective];
    for (const StoreState& array : manifest.state) {
      const bool of_longer = std::any_of(  // "kl-own-head" is of "kl-own", not of "kl"
          all.items().begin(), all.items().end(), [&](const auto& other) {
            return other.key().size() > objective.size() &&
                   array.name.starts_with(other.key() + "-");
          });
      if (!of_longer && array.name.starts_with(objective + "-")) state[array.name] = array.checksum;
    }
  }
  settings.erase("allow_truncated");
  settings.erase("preset");  // all that follows from it stands beside it
  settings["objectives"] = std::move(objectives);
  if (!gradients)
    for (const char* key : {"seed", "layer", "layer_input"}) settings.erase(key);
  if (!gradients || !projected) settings.erase("projection");
  return {{"precision", spec.precision},
          {"model", network(spec)},
          {"settings", std::move(settings)},
          {"blocks", std::move(widths)},
          {"state", std::move(state)}};
}

}  // namespace

void require_same(const StoreSpec& expected, const StoreSpec& found, const std::string& place,
                  const std::string& hint) {
  Json stored = identity(expected), wanted = identity(found);
  // Whole files give the same rows; a store that lacks those that are cut off may begin to take
  // them.
  if (stored["settings"].value("allow_truncated", Json()) == Json(false))
    stored["settings"].erase("allow_truncated"), wanted["settings"].erase("allow_truncated");
  if (const auto d = first_difference(stored, wanted, "")) {
    fail(fmt::format("the setting '{}' differs: the store has {}, this run has {}", d->path,
                     d->expected, d->found),
         place,
         d->path.starts_with("settings.preprocess")
             ? "keep the model's config.json or preprocessor_config.json beside it, or state its "
               "transform (`stated_facts`: mean, std, resize, squash, crop, interpolation); or " +
                   hint
             : hint);
  }
}

void require_comparable(const StoreManifest& expected, const StoreManifest& found,
                        const std::vector<std::string>& blocks, bool projected,
                        const std::string& place, const std::string& hint) {
  for (const std::string& name : blocks) {
    if (!find_block(found.spec.blocks, name))
      fail(fmt::format("there is no block '{}'; the store holds {}", name,
                       fmt::join(names_of(found.spec.blocks), ", ")),
           place, "name blocks that both have with `features`, or " + hint);
  }
  if (const auto d = first_difference(identity_of_blocks(expected, blocks, projected),
                                      identity_of_blocks(found, blocks, projected), "")) {
    const std::string own = d->path == "precision"
                                ? hint + ", and `precision=" + expected.spec.precision + "`"
                            : d->path.starts_with("settings.projection")
                                ? "extract or project both with the same options"
                                : hint;
    fail(fmt::format("its rows cannot be compared: '{}' should be {}, but is {}", d->path,
                     d->expected, d->found),
         place, own);
  }
}

}  // namespace fungi
