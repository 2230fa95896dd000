// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fungi/base/error.h"

namespace fungi {
namespace {

template <class T>
void read_count(JsonFields& fields, const std::string& name, T& out) {
  const nlohmann::json& value = fields.value(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<T>::max())
    fields.refuse(name, "a whole number from 0 on");
  out = value.get<T>();
}

bool is_float(const nlohmann::json& value) {
  return value.is_number() &&
         std::abs(value.get<double>()) <= double(std::numeric_limits<float>::max());
}

}  // namespace

JsonFields::JsonFields(const nlohmann::json& value, std::string path, std::string place)
    : object_(value), path_(std::move(path)), place_(std::move(place)) {
  if (!value.is_object())
    fail(fmt::format("expected a JSON object{}{}{}, found {}", path_.empty() ? "" : " as '", path_,
                     path_.empty() ? "" : "'", value.dump(-1, ' ', true)),
         place_);
}

std::vector<std::string> JsonFields::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) names.push_back(name);
  return names;
}

std::string JsonFields::path_of(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const nlohmann::json& JsonFields::value(const std::string& name) {
  asked_.push_back(name);
  const auto found = object_.find(name);
  if (found == object_.end()) fail(fmt::format("the field '{}' is missing", path_of(name)), place_);
  return *found;
}

void JsonFields::refuse(const std::string& name, const std::string& expected) const {
  using nlohmann::json;
  fail(fmt::format("the field '{}' holds {}, which is not {}", path_of(name),
                   object_.at(name).dump(-1, ' ', true, json::error_handler_t::replace), expected),
       place_);
}

void JsonFields::read(const std::string& name, bool& out) {
  if (!value(name).is_boolean()) refuse(name, "true or false");
  out = object_.at(name).get<bool>();
}

void JsonFields::read(const std::string& name, unsigned& out) { read_count(*this, name, out); }
void JsonFields::read(const std::string& name, unsigned long& out) { read_count(*this, name, out); }
void JsonFields::read(const std::string& name, unsigned long long& out) {
  read_count(*this, name, out);
}

void JsonFields::read(const std::string& name, float& out) {
  if (!is_float(value(name))) refuse(name, "a number");
  out = object_.at(name).get<float>();
}

void JsonFields::read(const std::string& name, double& out) {
  if (!value(name).is_number()) refuse(name, "a number");
  out = object_.at(name).get<double>();
}

void JsonFields::read(const std::string& name, std::string& out) {
  if (!value(name).is_string()) refuse(name, "text");
  out = object_.at(name).get<std::string>();
}

void JsonFields::read(const std::string& name, std::array<float, 3>& out) {
  const nlohmann::json& list = value(name);
  if (!list.is_array() || list.size() != 3 || !std::all_of(list.begin(), list.end(), is_float))
    refuse(name, "a list of three numbers");
  for (size_t i = 0; i < 3; ++i) out[i] = list[i].get<float>();
}

JsonFields JsonFields::inside(const std::string& name) {
  return {value(name), path_of(name), place_};
}

void JsonFields::require_all_read() const {
  for (const std::string& name : names())
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end())
      fail(fmt::format("the field '{}' is none that this version knows", path_of(name)), place_);
}

}  // namespace fungi
