// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/label_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fungi/base/error.h"
#include "fungi/base/utf8.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::map<std::string, std::string, std::less<>> read_names(const std::filesystem::path& file) {
  const std::string text = store::read_text(file);
  std::map<std::string, std::string, std::less<>> names;
  std::string_view rest = text;
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (stripped(row).empty()) continue;
    const auto refuse = [&](const std::string& what, const char* hint) {
      fail(what, fmt::format("{}, line {}", file.string(), line), hint);
    };
    const size_t tab = row.find('\t');
    if (tab == std::string_view::npos)
      refuse("expected a label, a tab and its name, found no tab",
             "write one line for each label: label<TAB>name");
    const std::string_view name = row.substr(tab + 1);
    const auto [at, fresh] =
        names.emplace(stripped(row.substr(0, tab)), stripped(name.substr(0, name.find('\t'))));
    if (at->second.empty()) refuse("the name is empty", "give every label a name");
    if (!fresh)
      refuse(fmt::format("the label '{}' stands there again", at->first), "keep one line");
  }
  return names;
}

void require_usable(const std::vector<std::string>& names, const std::string& place) {
  std::map<std::string_view, size_t> seen;
  for (size_t label = 0; label < names.size(); ++label) {
    if (names[label].empty()) continue;
    if (first_bad_byte(names[label]))
      fail(fmt::format("the name of label {} is no UTF-8, and a prompt must be", label), place,
           "give the labels other names with `label_names`");
    if (const auto [at, fresh] = seen.emplace(names[label], label); !fresh)
      fail(fmt::format("the labels {} and {} have the same name '{}'", at->second, label,
                       names[label]),
           place, "give each label a name of its own");
  }
}

}  // namespace

std::string LabelNames::list() const {
  std::string out;
  for (const std::string& name : names)
    if (!name.empty()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

int64_t LabelNames::find(std::string_view reply) const {
  const std::string_view name = stripped(reply);
  if (name.empty()) return -1;
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : at - names.begin();
}

LabelNames label_names(const Store& train, const std::filesystem::path& file) {
  require_labels(train);
  LabelNames out;
  for (const std::string& name : train.classes()) out.names.emplace_back(stripped(name));
  if (train.classes().empty())
    for (const int64_t label : train.labels()) {
      if (size_t(label) >= out.names.size()) out.names.resize(size_t(label) + 1);
      out.names[size_t(label)] = std::to_string(label);
    }
  if (!file.empty()) {
    const auto given = read_names(file);
    for (std::string& name : out.names) {
      if (name.empty()) continue;
      const auto at = given.find(name);
      if (at == given.end())
        fail(fmt::format("expected a name for the label '{}', found none", name), file.string(),
             "add the line label<TAB>name");
      name = at->second;
    }
  }
  require_usable(out.names, file.empty() ? train.folder().string() : file.string());
  return out;
}

}  // namespace fungi
