// SPDX-License-Identifier: Apache-2.0
// What config.json says. A file that cannot be read, or a fact of the wrong type, is an Error: to
// go on without it would be a guess.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/backbone/names.h"
#include "fungi/base/json.h"

namespace fungi {
namespace {

std::string printed(const nlohmann::json& value) {
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

[[noreturn]] void mistyped(const Checkpoint& checkpoint, const std::string& pointer,
                           const char* expected, const nlohmann::json& found) {
  fail(fmt::format("config.json: expected {} as {}, found {}", expected, pointer, printed(found)),
       checkpoint.path(),
       "correct config.json, or move it away and state the facts with `stated_facts`");
}

}  // namespace

nlohmann::json json_beside(const Checkpoint& checkpoint, const char* name) {
  const std::string text = checkpoint.beside(name);
  if (text.empty()) return nullptr;
  auto all = parse_json(text);
  if (!all.is_object())
    fail(fmt::format("{}: expected a JSON object, found something else or a part of one", name),
         checkpoint.path(),
         "get the file again, or move it away and state the facts with `stated_facts`");
  return all;
}

const nlohmann::json& NameReader::config() const {
  if (!config_)
    config_ = std::make_shared<const nlohmann::json>(json_beside(checkpoint_, "config.json"));
  return *config_;
}

bool NameReader::has_config() const { return !config().is_null(); }

// Models of several networks describe each in a part of its own; what is at the top is then of the
// whole, or of the text model.
std::string NameReader::find_config_root() const {
  std::vector<std::string> found;
  for (const char* part : {"vision_config", "encoder", "backbone_config", "image_config"})
    if (config().contains(part) && config().at(part).is_object()) found.push_back(part);
  if (found.size() > 1)
    fail(fmt::format("config.json: expected one description of an image encoder, found {}",
                     fmt::join(found, " and ")),
         checkpoint_.path(), "leave that of this network in config.json alone");
  return found.empty() ? "" : "/" + found.front();
}

std::optional<std::string> NameReader::config_whole_type() const {
  const auto at = config().find("model_type");
  return at != config().end() && at->is_string() ? std::optional(at->get<std::string>())
                                                 : std::nullopt;
}

const nlohmann::json* NameReader::config_value(std::string_view pointer) const {
  const nlohmann::json* value = &config();
  if (!root_.empty()) value = &value->at(root_.substr(1));
  // timm before 0.8 wrote what it now calls pretrained_cfg beside the architecture.
  constexpr std::string_view kTimm = "/pretrained_cfg";
  if (pointer.starts_with(kTimm) && value->contains("architecture") &&
      !value->contains("pretrained_cfg"))
    pointer.remove_prefix(kTimm.size());
  while (!pointer.empty() && value) {
    pointer.remove_prefix(1);  // the slash
    const std::string key(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(key.size());
    const size_t index = size_t(key.empty() ? 9 : key[0] - '0');  // lists here have few places
    if (value->is_object() && value->contains(key))
      value = &value->at(key);
    else if (value->is_array() && key.size() == 1 && index < value->size())
      value = &value->at(index);
    else
      value = nullptr;
  }
  return value && !value->is_null() ? value : nullptr;
}

std::optional<std::string> NameReader::config_text(const char* pointer) const {
  const nlohmann::json* value = config_value(pointer);
  return value && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

std::optional<std::string> NameReader::architecture() const {
  const auto name = stated("architecture");
  return name ? name : config_text("/architecture");
}

std::optional<double> NameReader::config_number(const char* pointer) const {
  const nlohmann::json* value = config_value(pointer);
  if (!value || value->is_array()) return {};
  if (!value->is_number()) mistyped(checkpoint_, root_ + pointer, "a number", *value);
  return value->get<double>();
}

std::optional<size_t> NameReader::config_size(const char* pointer) const {
  const auto number = config_number(pointer);
  if (!number) return {};
  if (!(*number >= 1 && *number <= 1 << 20) || *number != std::floor(*number))
    mistyped(checkpoint_, root_ + pointer, "a whole number from 1 to 2^20", *config_value(pointer));
  return size_t(*number);
}

std::optional<kernel::Activation> NameReader::config_activation(const char* pointer) const {
  const auto text = config_text(pointer);
  if (!text) return {};
  try {
    return parse_activation(*text);
  } catch (const Error& e) {
    if (stated("activation")) return {};  // which has the last word
    fail(fmt::format("config.json: {} as {}", e.message(), root_ + pointer), checkpoint_.path(),
         e.hint());
  }
}

std::vector<std::string> NameReader::config_keys(const char* pointer) const {
  std::vector<std::string> keys;
  const nlohmann::json* value = config_value(pointer);
  if (value && value->is_object())
    for (const auto& [key, ignored] : value->items()) keys.push_back(key);
  return keys;
}

std::vector<std::string> NameReader::config_texts(const char* pointer) const {
  std::vector<std::string> texts;
  const nlohmann::json* value = config_value(pointer);
  if (value && value->is_array())
    for (const auto& entry : *value)
      texts.push_back(entry.is_string() ? entry.get<std::string>() : printed(entry));
  return texts;
}

std::string NameReader::config_dump(const char* pointer) const {
  const nlohmann::json* value = config_value(pointer);
  return value ? printed(*value) : "null";
}

std::optional<bool> NameReader::config_flag(const char* pointer) const {
  const nlohmann::json* value = config_value(pointer);
  return value && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

}  // namespace fungi
