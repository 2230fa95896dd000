// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "fungi/base/error.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/store/text.h"
#include "fungi/store/upgrade.h"

namespace fungi {
namespace {

using store::Json;

constexpr double kMostWeight = 1e6;  // of a block, in lengths of the embedding
constexpr const char* kFormat = "fungi feature store";
constexpr size_t kMostFloats = size_t{1} << 40;  // of a block per sample: sums do not overflow

Json blocks_json(const StoreSpec& spec) {
  Json blocks = Json::array();
  for (const StoreBlock& block : spec.blocks) {
    blocks.push_back({{"name", block.name},
                      {"rows", block.rows},
                      {"width", block.width},
                      {"type", to_string(spec.type)}});
    if (block.weight != 1) blocks.back()["weight"] = block.weight;
  }
  return blocks;
}

// parse_manifest reads a file that anybody may have touched: a missing or mistyped field is an
// Error, not a crash.
template <class T>
T field(const Json& object, const char* name, const std::string& place) {
  const auto found = object.find(name);
  if (found == object.end()) fail(fmt::format("the field '{}' is missing", name), place);
  try {
    if (std::is_same_v<T, size_t> && !found->is_number_unsigned())  // get() would convert it
      throw Json::type_error::create(302, "expected a whole number", nullptr);
    return found->get<T>();
  } catch (const Json::exception&) {
    fail(fmt::format("the field '{}' holds {}, which is of the wrong type", name,
                     store::dump(*found)),
         place);
  }
}

Json list(const Json& object, const char* name, const std::string& place) {
  Json value = field<Json>(object, name, place);
  if (!value.is_array()) fail(fmt::format("the field '{}' should be a list", name), place);
  return value;
}

std::string text_field(const Json& object, const char* name, const std::string& place) {
  return store::from_json_string(field<std::string>(object, name, place));
}

// Names of blocks and state become file names, also when they come from a file somebody sent:
// nothing of paths in them, and nothing that "<name>-[0-9]*.npy" would confuse.
// `layers`: a layer may be part of it.
void require_file_name(const std::string& name, const std::string& place, bool layers = false) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  bool good = !name.empty() && letter(name[0]) && name != "rows" && name != "failed";
  for (size_t i = 0; i < name.size(); ++i) {
    const char next = i + 1 < name.size() ? name[i + 1] : '\0';
    good = good && (letter(name[i]) || digit(name[i]) || name[i] == '_' || name[i] == '-' ||
                    (layers && (name[i] == '@' || name[i] == '.')));
    good = good && !(name[i] == '-' && digit(next));
  }
  if (!good) {
    fail(fmt::format("'{}' cannot be the name of a block or of state", name), place,
         "use letters, digits, '_' and '-', a letter first and no digit after a '-'; not 'rows' or "
         "'failed'");
  }
}

}  // namespace

void require_state_name(const std::string& name) { require_file_name(name, "store state"); }

void require_objective_name(const std::string& name) {
  require_file_name(name, "objectives");
  if (name == "embedding" || !factors_of(name).empty())
    fail(fmt::format("'{}' cannot be the name of an objective: another block is called so", name),
         "objectives", "choose another name");
}

const char* to_string(StoreType type) { return type == StoreType::float16 ? "float16" : "float32"; }

StoreType parse_store_type(const std::string& name) {
  if (name == "float32") return StoreType::float32;
  if (name == "float16") return StoreType::float16;
  fail("expected float32 or float16, found '" + name + "'", "store type");
}

size_t StoreManifest::rows() const {
  size_t sum = 0;
  for (const StoreShard& shard : shards) sum += shard.rows;
  return sum;
}

std::string factor_block(std::string_view objective, char which) {
  return fmt::format("{}_factors_{}", objective, which);
}

std::string_view factors_of(std::string_view block) {
  for (const char which : {'a', 'b'})
    if (const std::string mark = factor_block("", which); block.ends_with(mark))
      return block.substr(0, block.size() - mark.size());
  return {};
}

std::string layer_block(std::string_view objective, std::string_view layer) {
  return fmt::format("{}@{}", objective, layer);
}

std::pair<std::string_view, std::string_view> split_layer(std::string_view block) {
  const size_t at = block.find('@');
  if (at == std::string_view::npos) return {block, {}};
  return {block.substr(0, at), block.substr(at + 1)};
}

bool is_feature(const StoreBlock& block) {
  return block.rows == 1 && factors_of(block.name).empty();
}

std::vector<std::string> feature_names(const StoreSpec& spec) {
  std::vector<std::string> names;
  for (const StoreBlock& block : spec.blocks)
    if (is_feature(block)) names.push_back(block.name);
  return names;
}

void require_side_by_side(const std::vector<StoreBlock>& blocks, const std::string& place) {
  for (const StoreBlock& block : blocks)
    if (block.rows != 1)
      fail(fmt::format("the block '{}' has {} rows per sample, which cannot stand beside others",
                       block.name, block.rows),
           place, "name blocks with one row; Store::gather() and Store::map() read it");
}

size_t total_width(const std::vector<StoreBlock>& blocks) {
  size_t width = 0;
  for (const StoreBlock& block : blocks) width += block.size();
  return width;
}

std::vector<std::string> names_of(const std::vector<StoreBlock>& blocks) {
  std::vector<std::string> names;
  for (const StoreBlock& block : blocks) names.push_back(block.name);
  return names;
}

std::string features_of(const std::vector<StoreBlock>& blocks, bool all_weights) {
  std::string features;
  for (const StoreBlock& block : blocks) {
    if (!features.empty()) features += '+';
    if (block.weight != 1 || (all_weights && block.name != "embedding"))
      features += fmt::format("{}*", block.weight);
    features += block.name;
  }
  return features;
}

const StoreBlock* find_block(const std::vector<StoreBlock>& blocks, std::string_view name) {
  const auto at = std::find_if(blocks.begin(), blocks.end(),
                               [&](const StoreBlock& block) { return block.name == name; });
  return at == blocks.end() ? nullptr : &*at;
}

std::vector<std::string> split_features(std::string_view features) {
  std::vector<std::string> names;
  for (;;) {
    const size_t plus = features.find('+');
    names.emplace_back(features.substr(0, plus));
    if (plus == std::string_view::npos) return names;
    features.remove_prefix(plus + 1);
  }
}

std::pair<std::optional<double>, std::string> split_weight(std::string_view part,
                                                           const std::string& place) {
  const size_t star = part.find('*');
  if (star == part.npos) return {std::nullopt, std::string(part)};
  const std::string_view text = part.substr(0, star);
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || end != text.data() + text.size() || !(weight > 0) ||
      !std::isfinite(weight))
    fail(fmt::format("'{}' weighs a block by '{}', expected a number above 0", printable(part),
                     printable(text)),
         place, "write 0.5*kl, without blanks; leave out a block that shall not count");
  return {weight, std::string(part.substr(star + 1))};
}

std::string to_json(const StoreManifest& m) {
  Json origins = Json::array(), classes = Json::array(), shards = Json::array();
  for (const StoreOrigin& o : m.origins)
    origins.push_back({{"version", o.version}, {"isa", o.isa}});
  for (const std::string& name : m.classes) classes.push_back(store::to_json_string(name));
  for (const StoreShard& s : m.shards) {
    while (shards.size() < s.index) shards.push_back(nullptr);
    shards.push_back(s.rows);
  }
  Json state = Json::array();
  for (const StoreState& s : m.state) {
    state.push_back({{"name", s.name}, {"shape", {s.rows, s.cols}}, {"checksum", s.checksum}});
  }
  Json json = {
      {"format", kFormat},
      {"format_version", kStoreVersion},
      {"pipeline", m.spec.pipeline},
      {"precision", m.spec.precision},
      {"blocks", blocks_json(m.spec)},
      {"rows", m.rows()},
      {"failed", m.failed},
      {"samples", m.samples},
      {"planned", m.planned},
      {"complete", m.complete},
      {"model",
       {{"path", store::to_json_string(m.spec.model_path)},
        {"sha256", m.spec.model_sha256},
        {"architecture", store::parse_object(m.spec.architecture, "architecture")}}},
      {"settings", store::parse_object(m.spec.settings, "settings")},
      {"notes", store::parse_object(m.spec.notes, "notes")},
      {"produced_by", std::move(origins)},
      {"state", std::move(state)},
      {"classes", std::move(classes)},
      {"shard_size", m.shard_size},
      {"shards", std::move(shards)},
  };
  if (m.followed_classes > 0) json["followed_classes"] = m.followed_classes;
  if (m.part) json["part"] = {{"part", to_string(m.part->part)}, {"data", m.part->data}};
  return store::dump(json, 1) + "\n";
}

namespace {

StoreManifest read_fields(const std::string& text, const std::string& place) {
  Json json = store::parse(text, place);
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    fail("this is not the manifest of a feature store", place,
         "name the folder of a store, or a new one");
  }
  int version = field<int>(json, "format_version", place);
  if (version == 1) {
    json = store::upgrade_from_1(std::move(json), place);
    version = kStoreVersion;
  }
  if (version != kStoreVersion) {
    fail(fmt::format("expected a store format version up to {}, found {}", kStoreVersion, version),
         place, "use the version of fungi that wrote it");
  }
  StoreManifest m;
  m.spec.pipeline = field<std::string>(json, "pipeline", place);
  m.spec.precision = field<std::string>(json, "precision", place);
  for (const Json& block : list(json, "blocks", place)) {
    m.spec.blocks.push_back({field<std::string>(block, "name", place),
                             field<size_t>(block, "width", place),
                             field<size_t>(block, "rows", place)});
    if (block.contains("weight"))
      m.spec.blocks.back().weight = field<double>(block, "weight", place);
    m.spec.type = parse_store_type(field<std::string>(block, "type", place));
  }
  const Json model = field<Json>(json, "model", place);
  m.spec.model_path = text_field(model, "path", place);
  m.spec.model_sha256 = field<std::string>(model, "sha256", place);
  m.spec.architecture = store::dump(field<Json>(model, "architecture", place));
  m.spec.settings = store::dump(field<Json>(json, "settings", place));
  m.spec.notes = store::dump(field<Json>(json, "notes", place));
  for (const Json& origin : list(json, "produced_by", place)) {
    m.origins.push_back(
        {field<std::string>(origin, "version", place), field<std::string>(origin, "isa", place)});
  }
  if (!m.origins.empty()) m.spec.isa = m.origins.back().isa;
  for (const Json& name : list(json, "classes", place)) {
    if (!name.is_string()) fail("class names should be strings, found " + store::dump(name), place);
    m.classes.push_back(store::from_json_string(name.get<std::string>()));
  }
  if (json.contains("followed_classes"))
    m.followed_classes = std::min(field<size_t>(json, "followed_classes", place), m.classes.size());
  if (json.contains("part")) {
    const Json part = field<Json>(json, "part", place);
    m.part = {parse_part(field<std::string>(part, "part", place)),
              field<std::string>(part, "data", place)};
  }
  for (const Json& state : list(json, "state", place)) {
    const auto shape = field<std::vector<size_t>>(state, "shape", place);
    if (shape.size() != 2) fail("the shape of a state array should have two numbers", place);
    const auto name = field<std::string>(state, "name", place);
    require_file_name(name, place);
    m.state.push_back({name, shape[0], shape[1], field<std::string>(state, "checksum", place)});
  }
  const Json shards = list(json, "shards", place);  // rows of each; null: not there yet
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].is_null()) continue;
    if (!shards[i].is_number_unsigned()) {
      fail("expected the rows of a shard, found " + store::dump(shards[i]), place);
    }
    m.shards.push_back({i, shards[i].get<size_t>()});
  }
  m.shard_size = field<size_t>(json, "shard_size", place);
  m.samples = field<size_t>(json, "samples", place);
  m.failed = field<size_t>(json, "failed", place);
  size_t left = m.samples;
  for (const StoreShard& shard : m.shards) {
    if (shard.rows > left)
      fail(fmt::format("the shards hold more rows than the data set of {} samples", m.samples),
           place);
    left -= shard.rows;
  }
  m.planned = field<bool>(json, "planned", place);
  m.complete = field<bool>(json, "complete", place);
  require_valid(m.spec);
  return m;
}

}  // namespace

StoreManifest parse_manifest(const std::string& text, const std::string& place) {
  try {
    return read_fields(text, place);
  } catch (const Error& e) {
    if (!e.hint().empty()) throw;
    fail(fmt::format("the manifest of a store is damaged: {}", e.message()), place,
         "restore this file from a copy; or delete the whole folder yourself and write it again: "
         "`overwrite` deletes nothing that it cannot read");
  }
}

void require_valid(const StoreSpec& spec) {
  if (spec.blocks.empty()) fail("expected at least one block of features", "store");
  std::set<std::string> seen;
  for (const StoreBlock& block : spec.blocks) {
    const std::string& name = block.name;
    require_file_name(name, "store", true);
    if (block.width == 0) fail(fmt::format("the block '{}' has no columns", name), "store");
    if (block.rows == 0) fail(fmt::format("the block '{}' has no rows", name), "store");
    if (!(block.weight > 0 && block.weight <= kMostWeight))
      fail(fmt::format("the weight of the block '{}' is {}, expected one above 0 and up to {}",
                       name, block.weight, kMostWeight),
           "store", "give another `weight`");
    if (block.rows > kMostFloats / block.width)
      fail(fmt::format("the block '{}' has {} rows of {} columns per sample: more than any file",
                       name, block.rows, block.width),
           "store");
    if (!seen.insert(name).second) fail(fmt::format("two blocks are named '{}'", name), "store");
  }
  store::parse_object(spec.settings, "settings");
  store::parse_object(spec.architecture, "architecture");
  store::parse_object(spec.notes, "notes");
}

}  // namespace fungi
