// SPDX-License-Identifier: Apache-2.0
// Words with ids of their own, which are cut out of a text before anything else is done to it.
// Internal to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/token/trie.h"

namespace fungi::token {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // not inside of a longer word
  bool lstrip = false;       // takes the blanks before it, too
  bool rstrip = false;       // and those behind it
  bool normalized = false;   // is looked for in the normalised text
};

class AddedTokens {
 public:
  void add(const AddedToken& token, std::string_view looked_for);
  int32_t id_of(std::string_view content) const;  // -1: none

  // All in `text`, from left to right: between(begin, end) for what is no token and not empty,
  // found(id) for what is.
  template <class Between, class Found>
  void split(std::string_view text, const Between& between, const Found& found) const {
    size_t done = 0;
    for (size_t at = 0; !trie_.empty() && at < text.size();) {
      if (!begins_[uint8_t(text[at])]) {
        ++at;
        continue;
      }
      const Trie::Match match = trie_.longest(text.substr(at));
      if (match.length == 0) {
        ++at;
        continue;
      }
      const size_t begin = at;
      at += match.length;
      const AddedToken& token = tokens_[size_t(match.value)];
      if (const auto place = place_of(token, text, begin, at, done)) {
        if (done < place->begin) between(done, place->begin);
        found(token.id);
        done = place->end;
      }
    }
    if (done < text.size()) between(done, text.size());
  }

 private:
  struct Place {
    size_t begin, end;
  };
  static std::optional<Place> place_of(const AddedToken& token, std::string_view text, size_t begin,
                                       size_t end, size_t done);
  std::vector<AddedToken> tokens_;
  Trie trie_;
  std::vector<bool> begins_ = std::vector<bool>(256);
};

}  // namespace fungi::token
