// SPDX-License-Identifier: Apache-2.0
// Reading one part of tokenizer.json: its type, and its fields, all of which must be known.
// Internal to this room.
#pragma once

#include <string>

#include "fungi/base/json_fields.h"

namespace fungi::token {

class PartFields {
 public:
  // `kind`: "normalizer", "model" ...
  PartFields(const nlohmann::json& part, const char* kind, const std::string& place);

  const std::string& type() const { return type_; }
  const std::string& place() const { return place_; }
  const char* kind() const { return kind_; }

  // Of what is missing or null the default stays.
  template <class T>
  T get(const std::string& name, T otherwise) {
    if (is_there(name)) fields_.read(name, otherwise);
    return otherwise;
  }
  std::string text(const std::string& name) { return read<std::string>(name); }
  const nlohmann::json& value(const std::string& name) { return fields_.value(name); }
  bool is_there(const std::string& name);  // and not null
  void leave(const std::string& name);     // says nothing about ids

  [[noreturn]] void refuse(const std::string& name, const std::string& expected);
  [[noreturn]] void refuse_type() const;  // none that is understood
  void finish() const { fields_.require_all_read(); }

 private:
  template <class T>
  T read(const std::string& name) {
    T out;
    fields_.read(name, out);
    return out;
  }
  const char* kind_;
  std::string place_, type_;
  JsonFields fields_;
};

// {"String": "x"} or {"Regex": "x"}.
struct PatternText {
  std::string text;
  bool is_regex;
};
PatternText pattern_text(PartFields& part);

}  // namespace fungi::token
