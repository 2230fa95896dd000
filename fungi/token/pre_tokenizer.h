// SPDX-License-Identifier: Apache-2.0
// What pre-tokenizers share. Internal to this room.
#pragma once

#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"

namespace fungi::token {

// What becomes of the matches that split a text.
enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Splits one span into the spare ones of `pieces`: fed with the matches from left to right, then
// told where the span ends.
class Splitter {
 public:
  Splitter(Pieces& pieces, Span span, Behaviour behaviour, bool inverted)
      : pieces_(pieces), at_(span.begin), behaviour_(behaviour), inverted_(inverted) {}

  void match(size_t begin, size_t end) {
    if (at_ < begin) add(at_, begin, inverted_);
    add(begin, end, !inverted_);
    at_ = end;
  }
  void finish(size_t end) {
    if (at_ < end) add(at_, end, inverted_);
    if (open_) pieces_.add_spare(open_->begin, open_->end);
  }

 private:
  void add(size_t begin, size_t end, bool is_match);
  Pieces& pieces_;
  size_t at_;
  Behaviour behaviour_;
  bool inverted_, before_ = false;
  std::optional<Span> open_;  // may still grow
};

PreTokenizerPtr make_bert_pre_tokenizer();
PreTokenizerPtr make_byte_level(bool prefix_space, bool use_regex);

// A byte as a character that can be seen: itself where it is one.
void append_byte_char(std::string& text, uint8_t byte);

}  // namespace fungi::token
