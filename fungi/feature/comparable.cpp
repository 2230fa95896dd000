// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/comparable.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/feature/modality.h"
#include "fungi/store/difference.h"

namespace fungi {
namespace {

using store::Json;

// The network as it is run: the file, and the facts it came to. They may come from the file, from
// config.json or from the user, which makes no difference; what only explains them is left out.
Json network(const StoreSpec& spec) {
  Json facts = store::parse_object(spec.architecture, "architecture");
  for (const char* key : {"family", "dialect", "heads_assumed", "parameters", "preprocess", "sound"})
    facts.erase(key);
  facts["sha256"] = spec.model_sha256;
  return facts;
}

// Null: the version that wrote the one did not say.
void compare_what_both_say(Json& a, Json& b) {
  const auto silent = [](const Json& facts) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : facts.items())
      if (value.is_null()) keys.push_back(key);
    return keys;
  };
  for (const auto& keys : {silent(a), silent(b)})
    for (const std::string& key : keys) a.erase(key), b.erase(key);
}

Json to_json(const Settings& settings) {
  StoreSpec spec;
  write_settings(settings, spec);
  return store::parse_object(spec.settings, "settings");
}

void refuse_truncated(Settings& settings) {
  if (auto* image = std::get_if<ImageSettings>(&settings.input))
    image->decode.allow_truncated = false;
  if (auto* sound = std::get_if<SoundSettings>(&settings.input)) sound->allow_truncated = false;
}

bool takes_truncated(const Settings& settings) {
  return decode_options(settings.input).allow_truncated;
}

// What the given blocks hold. How many digits are kept is no other treatment.
Json identity_of_blocks(const StoreManifest& manifest, const std::vector<std::string>& blocks,
                        bool projected, const std::string& place) {
  const StoreSpec& spec = manifest.spec;
  Json shapes = Json::object(), state = Json::object();
  const std::vector<std::string> all = names_of(spec.blocks);
  for (const std::string& name : blocks) {
    const bool gradient = name != "embedding";
    const std::string objective(factors_of(name).empty() ? split_layer(name).first
                                                         : factors_of(name));
    if (const StoreBlock* block = find_block(spec.blocks, name); block && (projected || !gradient))
      shapes[name] = store::shape_of(*block);
    for (const StoreState& array : manifest.state) {
      const bool of_longer =  // "kl-own-head" is of "kl-own", not of "kl"
          std::any_of(all.begin(), all.end(), [&](const std::string& other) {
            return other.size() > objective.size() && array.name.starts_with(other + "-");
          });
      if (!of_longer && array.name.starts_with(objective + "-")) state[array.name] = array.checksum;
    }
  }
  return {{"precision", spec.precision},
          {"model", network(spec)},
          {"settings", has_settings(spec) ? to_json(settings_of_blocks(read_settings(spec, place),
                                                                       blocks, projected))
                                          : store::parse_object(spec.settings, "settings")},
          {"blocks", std::move(shapes)},
          {"state", std::move(state)}};
}

std::optional<store::Difference> difference(Json expected, Json found) {
  compare_what_both_say(expected["model"], found["model"]);
  return store::first_difference(expected, found);
}

}  // namespace

void require_same_features(const StoreSpec& expected, const StoreSpec& found,
                           const std::string& place, const std::string& hint) {
  Json stored = store::identity(expected), wanted = store::identity(found);
  stored["model"] = network(expected), wanted["model"] = network(found);
  if (has_settings(expected) && has_settings(found)) {
    Settings before = read_settings(expected, place), now = read_settings(found, place);
    before.stated.clear(), now.stated.clear();  // network() has what became of it
    if (!takes_truncated(before) && takes_truncated(now)) refuse_truncated(now);
    stored["settings"] = to_json(before), wanted["settings"] = to_json(now);
  }
  if (const auto d = difference(std::move(stored), std::move(wanted)))
    store::fail_different(
        *d, place,
        d->path.starts_with("settings.image.preprocess")
            ? "keep the model's config.json or preprocessor_config.json beside it, or state its "
              "transform (`stated_facts`: mean, std, resize, squash, crop, interpolation); or " +
                  hint
            : hint);
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
  if (const auto d = difference(identity_of_blocks(expected, blocks, projected, place),
                                identity_of_blocks(found, blocks, projected, place))) {
    const std::string own = d->path == "precision"
                                ? hint + ", and `precision=" + expected.spec.precision + "`"
                            : d->path.starts_with("settings.gradient.projection") ||
                                    d->path.ends_with(".projection.rows")
                                ? "extract or project both with the same options"
                                : hint;
    fail(fmt::format("its rows cannot be compared: '{}' should be {}, but is {}", d->path,
                     d->expected, d->found),
         place, own);
  }
}

}  // namespace fungi
