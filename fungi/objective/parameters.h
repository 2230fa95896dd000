// SPDX-License-Identifier: Apache-2.0
// Parameters by name. Each parameter struct lists its fields once, in visit(); reading
// "temperature=1" from a command line, checking it and writing it into a manifest all follow from
// that list.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fungi/objective/objective.h"

namespace fungi {

class ParameterVisitor {
 public:
  virtual ~ParameterVisitor() = default;
  virtual void positive(const char* name, double& value) = 0;               // finite, > 0
  virtual void fraction(const char* name, double& value) = 0;               // in [0, 1]
  virtual void count(const char* name, size_t& value, size_t lowest) = 0;   // >= lowest
  virtual void square(const char* name, size_t& value, size_t lowest) = 0;  // of a whole number
  virtual void flag(const char* name, bool& value) = 0;                     // true or false
  virtual void choice(const char* name, size_t& index, const std::vector<std::string>& names) = 0;

  // Whether a parameter is to be visited that stores of earlier versions lack, or that has no
  // meaning here: manifests have it only where it is not as they mean it, so that stores which
  // differ in nothing stay equal.
  virtual bool wants([[maybe_unused]] bool unusual) { return true; }

  // An enum whose values count from 0 in the order of `names`.
  template <class Enum>
  void one_of(const char* name, Enum& value, const std::vector<std::string>& names) {
    size_t index = static_cast<size_t>(value);
    choice(name, index, names);
    value = static_cast<Enum>(index);
  }

  // What of a plan of views can be chosen.
  void views(ViewPlan& plan);
};

// "a, b, c", for messages.
std::string list_names(const std::vector<std::string>& names);

using Overrides = std::vector<std::pair<std::string, std::string>>;

// "a=1,b=two" → pairs. `place` names the option in error messages.
Overrides parse_overrides(std::string_view text, const std::string& place);

namespace parameters_detail {
class Reader final : public ParameterVisitor {
 public:
  Reader(const Overrides& overrides, std::string place);
  void positive(const char* name, double& value) override;
  void fraction(const char* name, double& value) override;
  void count(const char* name, size_t& value, size_t lowest) override;
  void square(const char* name, size_t& value, size_t lowest) override;
  void flag(const char* name, bool& value) override;
  void choice(const char* name, size_t& index, const std::vector<std::string>& names) override;
  void finish() const;  // Error when an override was asked for by nobody

 private:
  const std::string* find(const char* name);
  double number(const char* name, const std::string& text) const;
  const Overrides& overrides_;
  std::string place_;
  std::vector<bool> used_;
  std::vector<std::string> known_;
};

class Writer final : public ParameterVisitor {
 public:
  explicit Writer(bool all) : all_(all) {}
  bool wants(bool unusual) override { return all_ || unusual; }
  void positive(const char* name, double& value) override { list.push_back({name, value}); }
  void fraction(const char* name, double& value) override { list.push_back({name, value}); }
  void count(const char* name, size_t& value, size_t) override {
    list.push_back({name, static_cast<double>(value)});
  }
  void square(const char* name, size_t& value, size_t lowest) override {
    count(name, value, lowest);
  }
  void flag(const char* name, bool& value) override {
    list.push_back({name, std::string(value ? "true" : "false")});
  }
  void choice(const char* name, size_t& index, const std::vector<std::string>& names) override {
    list.push_back({name, names.at(index)});
  }
  std::vector<Parameter> list;

 private:
  bool all_;
};
}  // namespace parameters_detail

// Overwrites the named fields; an unknown name or a bad value is an Error that lists what is
// accepted.
template <class Parameters>
void read_parameters(const Overrides& overrides, const std::string& place, Parameters& parameters) {
  parameters_detail::Reader reader(overrides, place);
  parameters.visit(reader);
  reader.finish();
}

// As manifests have them, or `all` that can be chosen.
template <class Parameters>
std::vector<Parameter> list_parameters(Parameters parameters, bool all = false) {
  parameters_detail::Writer writer(all);
  parameters.visit(writer);
  return std::move(writer.list);
}

}  // namespace fungi
