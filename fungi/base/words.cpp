// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/words.h"

#include <algorithm>

namespace fungi {
namespace {

constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz_";

// What stands between two backticks, if it is a word.
std::optional<Word> parse_word(std::string_view text) {
  Word word;
  const size_t end = std::min(text.find_first_not_of(kNameLetters), text.size());
  word.name = text.substr(0, end);
  text.remove_prefix(end);
  if (word.name.empty()) return {};
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return {};
    word.key = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
  }
  if (text.empty()) return word;
  if (!text.starts_with('=')) return {};
  word.value = text.substr(1);
  return word;
}

}  // namespace

std::string with_words(std::string_view text,
                       const std::function<std::optional<std::string>(const Word&)>& say) {
  std::string out;
  while (!text.empty()) {
    const size_t open = std::min(text.find('`'), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const size_t close = text.find('`', 1);
    std::optional<std::string> said;
    if (close != std::string_view::npos)
      if (const auto word = parse_word(text.substr(1, close - 1))) said = say(*word);
    out += said.value_or("`");  // a backtick alone belongs to a name of somebody else's
    text.remove_prefix(said ? close + 1 : 1);
  }
  return out;
}

}  // namespace fungi
