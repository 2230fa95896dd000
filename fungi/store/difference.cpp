// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/difference.h"

#include <fmt/format.h>

#include "fungi/base/error.h"

namespace fungi {

namespace store {

std::optional<Difference> first_difference(const Json& expected, const Json& found,
                                           const std::string& path) {
  if (expected.is_object() && found.is_object()) {
    auto inside = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& [key, value] : expected.items()) {
      if (!found.contains(key)) return Difference{inside(key), dump(value), "nothing"};
      if (auto inner = first_difference(value, found[key], inside(key))) return inner;
    }
    for (const auto& [key, value] : found.items()) {
      if (!expected.contains(key)) return Difference{inside(key), "nothing", dump(value)};
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
  return Difference{path, dump(expected), dump(found)};
}

void fail_different(const Difference& d, const std::string& place, const std::string& hint) {
  fail(fmt::format("the setting '{}' differs: the store has {}, this run has {}", d.path,
                   d.expected, d.found),
       place, hint);
}

Json shape_of(const StoreBlock& block) {
  Json shape = block.rows == 1 ? Json(block.width) : Json{block.rows, block.width};
  if (block.weight == 1) return shape;
  return {{"columns", std::move(shape)}, {"weight", block.weight}};
}

Json identity(const StoreSpec& spec) {
  Json model = parse_object(spec.architecture, "architecture"), blocks = Json::object();
  model["sha256"] = spec.model_sha256;
  for (const StoreBlock& block : spec.blocks) blocks[block.name] = shape_of(block);
  return {{"pipeline", spec.pipeline},    {"precision", spec.precision},
          {"model", std::move(model)},    {"settings", parse_object(spec.settings, "settings")},
          {"type", to_string(spec.type)}, {"blocks", std::move(blocks)}};
}

}  // namespace store

void require_equal(const StoreSpec& expected, const StoreSpec& found, const std::string& place,
                   const std::string& hint) {
  using namespace store;
  if (const auto d = first_difference(identity(expected), identity(found)))
    fail_different(*d, place, hint);
}

}  // namespace fungi
