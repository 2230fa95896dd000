// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/token/trie.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

// Whole words that are pieces, and what those have in common that know no others.
class Words : public Model {
 public:
  Words(const Vocabulary& vocabulary, const std::string& unknown, const std::string& place)
      : pieces_(vocabulary.size()) {
    for (const auto& [piece, id] : vocabulary) {
      trie_.insert(piece, id);
      largest_ = std::max(largest_, id);
    }
    unknown_ = trie_.find(unknown);
    if (unknown_ < 0)
      fail(fmt::format("the vocabulary has no '{}', which stands for unknown words", unknown),
           place, "fetch the files of the model again");
  }

  void append_ids(std::string_view word, Scratch&, std::vector<int32_t>& ids) const override {
    const int32_t id = trie_.find(word);
    ids.push_back(id < 0 ? unknown_ : id);
  }
  int32_t id_of(std::string_view piece) const override { return trie_.find(piece); }
  size_t pieces() const override { return pieces_; }
  int32_t largest_id() const override { return largest_; }
  const char* name() const override { return "WordLevel"; }

 protected:
  Trie trie_;
  int32_t unknown_, largest_ = -1;

 private:
  size_t pieces_;
};

class WordPiece final : public Words {
 public:
  WordPiece(const Vocabulary& vocabulary, const std::string& unknown, const std::string& continuing,
            size_t longest_word, const std::string& place)
      : Words(vocabulary, unknown, place),
        longest_word_(longest_word),
        continuing_(trie_.walk(Trie::kRoot, continuing)) {}

  void append_ids(std::string_view word, Scratch&, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    bool known = word.size() <= longest_word_ || count_chars(word) <= longest_word_;
    uint32_t root = Trie::kRoot;
    for (size_t at = 0; known && at < word.size(); root = continuing_) {
      size_t end = at;
      int32_t best = -1;
      uint32_t node = root;
      for (size_t i = at; i < word.size() && node != Trie::kNowhere;) {
        node = trie_.step(node, word[i++]);
        if (node != Trie::kNowhere && trie_.value(node) >= 0) best = trie_.value(node), end = i;
      }
      known = best >= 0 && end > at;
      at = end;
      if (known) ids.push_back(best);
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(unknown_);
  }
  const char* name() const override { return "WordPiece"; }

 private:
  size_t longest_word_;
  uint32_t continuing_;  // where pieces begin that go on; nowhere if there are none
};

}  // namespace

ModelPtr make_wordpiece(const Vocabulary& vocabulary, const std::string& unknown,
                        const std::string& continuing, size_t longest_word,
                        const std::string& place) {
  return std::make_unique<WordPiece>(vocabulary, unknown, continuing, longest_word, place);
}

ModelPtr make_word_level(const Vocabulary& vocabulary, const std::string& unknown,
                         const std::string& place) {
  return std::make_unique<Words>(vocabulary, unknown, place);
}

}  // namespace fungi::token
