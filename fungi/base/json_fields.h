// SPDX-License-Identifier: Apache-2.0
// Fields of a JSON object that a stranger may have written: what is missing, of another type or out
// of range is an Error naming the field. Not for public headers.
// Internal to the library.
#pragma once

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

class JsonFields {
 public:
  // `path` is that of the object in its file ("" for the whole), `place` the file. Error unless
  // `value` is an object; it must live as long.
  JsonFields(const nlohmann::json& value, std::string path, std::string place);

  bool has(const std::string& name) const { return object_.contains(name); }
  std::vector<std::string> names() const;

  void read(const std::string& name, bool& out);
  void read(const std::string& name, unsigned& out);
  void read(const std::string& name, unsigned long& out);
  void read(const std::string& name, unsigned long long& out);
  void read(const std::string& name, float& out);   // finite
  void read(const std::string& name, double& out);  // finite
  void read(const std::string& name, std::string& out);
  void read(const std::string& name, std::array<float, 3>& out);
  // One of an enum's values by its word, which word_of(value) gives.
  template <class Enum, class WordOf>
  void read_word(const std::string& name, Enum& out, std::initializer_list<Enum> values,
                 const WordOf& word_of) {
    std::string word, choices;
    read(name, word);
    for (const Enum value : values) {
      if (word == word_of(value)) return void(out = value);
      choices += (choices.empty() ? "" : ", ") + std::string(word_of(value));
    }
    refuse(name, "one of " + choices);
  }
  JsonFields inside(const std::string& name);  // the object of that name
  const nlohmann::json& value(const std::string& name);

  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;
  // Error where the object holds a field that nobody asked for.
  void require_all_read() const;

 private:
  std::string path_of(const std::string& name) const;
  const nlohmann::json& object_;
  std::string path_, place_;
  std::vector<std::string> asked_;
};

}  // namespace fungi
