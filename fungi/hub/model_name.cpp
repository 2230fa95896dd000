// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/model_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/base/utf8.h"

namespace fungi {
namespace {

constexpr char kBetween[] = {'-', '-', 0};  // of the two parts of a folder's name
constexpr size_t kLongestName = 96, kLongestPath = 255;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view part) {
  const auto allowed = [](char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; };
  return !part.empty() && part.size() <= kLongestName && is_word(part.front()) &&
         std::all_of(part.begin(), part.end(), allowed) &&
         part.find("..") == std::string_view::npos && part.find(kBetween) == std::string_view::npos;
}

}  // namespace

bool is_commit(std::string_view revision) {
  return revision.size() == 40 &&
         revision.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

HubModelName parse_model_name(std::string_view text) {
  const std::string whole(text);
  const auto refuse = [&](const char* what) {
    fail(what, whole, "write it as its page does, ORG/NAME, or ORG/NAME@REVISION");
  };
  if (text.starts_with("hf:")) text.remove_prefix(3);
  HubModelName name;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    name.revision = text.substr(at + 1);
    text = text.substr(0, at);
    if (!is_safe_file_name(name.revision))
      refuse("expected a branch, tag or commit behind the '@'");
  }
  const size_t slash = text.find('/');
  if (!is_name(text.substr(0, slash)) ||
      (slash != std::string_view::npos && !is_name(text.substr(slash + 1))))
    refuse("expected the name of a model on a hub");
  name.id = text;
  return name;
}

std::string folder_name(const std::string& model_id) {
  const size_t slash = model_id.find('/');
  if (slash == std::string::npos) return model_id;
  return model_id.substr(0, slash) + kBetween + model_id.substr(slash + 1);
}

bool is_safe_file_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestPath || first_bad_byte(name)) return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\') return false;
  for (size_t from = 0; from <= name.size();) {
    const size_t end = std::min(name.find('/', from), name.size());
    const std::string_view part = name.substr(from, end - from);
    if (part.empty() || part == "." || part == "..") return false;
    from = end + 1;
  }
  return true;
}

std::string url_encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text)
    if (is_word(c) || (c != '\0' && (std::string_view("-_.~").find(c) != std::string_view::npos ||
                                     kept.find(c) != std::string_view::npos)))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace fungi
