// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/added_tokens.h"

#include <algorithm>

#include "fungi/token/unicode.h"

namespace fungi::token {

void AddedTokens::add(const AddedToken& token, std::string_view looked_for) {
  if (looked_for.empty()) return;
  trie_.insert(looked_for, int32_t(tokens_.size()));
  begins_[uint8_t(looked_for[0])] = true;
  tokens_.push_back(token);
}

int32_t AddedTokens::id_of(std::string_view content) const {
  for (const AddedToken& token : tokens_)
    if (token.content == content) return token.id;
  return -1;
}

std::optional<AddedTokens::Place> AddedTokens::place_of(const AddedToken& token,
                                                        std::string_view text, size_t begin,
                                                        size_t end, size_t done) {
  if (token.single_word && ((begin > 0 && is_word(char_before(text, begin))) ||
                            (end < text.size() && is_word(char_at(text, end)))))
    return {};
  if (token.lstrip)
    for (size_t at = begin; begin > done; begin = at) {
      do --at;
      while ((uint8_t(text[at]) & 0xC0) == 0x80);
      if (!is_space(char_at(text, at))) break;
    }
  while (token.rstrip && end < text.size() && is_space(char_at(text, end)))
    end += bytes_of(text[end]);
  return Place{begin, end};
}

}  // namespace fungi::token
