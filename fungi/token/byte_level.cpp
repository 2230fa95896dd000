// SPDX-License-Identifier: Apache-2.0
// GPT-2's way: a text is split into words with the blank before them, and each of its bytes stands
// as a character that can be seen, so that a vocabulary of texts can hold all of them.
#include <array>

#include "fungi/token/pattern.h"
#include "fungi/token/pre_tokenizer.h"

namespace fungi::token {
namespace {

// Printable characters of Latin-1 stand for themselves; all others, in order, for those from 256
// on.
std::array<std::string, 256> byte_chars() {
  std::array<std::string, 256> chars;
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    append_char(chars[byte], seen ? byte : next++);
  }
  return chars;
}

const char* const kWords =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool prefix_space, bool use_regex) : prefix_space_(prefix_space) {
    if (use_regex) words_.emplace(kWords);
  }

  void apply(Pieces& pieces) const override {
    std::string with_space;
    for (const Span span : pieces.spans) {
      std::string_view text = pieces.of(span);
      if (prefix_space_ && text[0] != ' ') text = with_space.assign(" ").append(text);
      if (words_)  // they leave nothing out
        words_->for_each_match(
            text, [&](size_t begin, size_t end) { add(pieces, text.substr(begin, end - begin)); });
      else
        add(pieces, text);
    }
    pieces.take_both();
  }

 private:
  static void add(Pieces& pieces, std::string_view word) {
    const size_t begin = pieces.spare_text.size();
    for (const char byte : word) append_byte_char(pieces.spare_text, uint8_t(byte));
    pieces.add_spare(begin, pieces.spare_text.size());
  }

  bool prefix_space_;
  std::optional<Pattern> words_;
};

}  // namespace

void append_byte_char(std::string& text, uint8_t byte) {
  static const std::array<std::string, 256> chars = byte_chars();
  text += chars[byte];
}

PreTokenizerPtr make_byte_level(bool prefix_space, bool use_regex) {
  return std::make_unique<ByteLevel>(prefix_space, use_regex);
}

}  // namespace fungi::token
