// SPDX-License-Identifier: Apache-2.0
// Matching by trying, with the ways that are still open on a stack of its own.
#include "fungi/token/regex.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "fungi/base/error.h"
#include "fungi/token/regex_parser.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

char32_t fold(char32_t c) {
  return char32_t(utf8proc_tolower(utf8proc_toupper(utf8proc_int32_t(c))));
}

// \w as Oniguruma has it: without the joiners that Unicode counts as parts of words; and outside of
// brackets, and at \b, with the numbers of Latin-1 that are no digits.
bool is_set_word(char32_t c) { return is_word(c) && c != 0x200C && c != 0x200D; }
bool is_lone_word(char32_t c) {
  return is_set_word(c) || (c >= 0x80 && c < 0x100 && is_numeric(c));
}

}  // namespace

bool CharSet::has_exactly(char32_t c) const {
  for (const Item& item : items_) {
    bool inside = false;
    switch (item.kind) {
      case Kind::categories:
        inside = category_of(c) & item.categories;
        break;
      case Kind::range:
        inside = c >= item.first && c <= item.last;
        break;
      case Kind::space:
        inside = is_space(c);
        break;
      case Kind::word:
        inside = is_set_word(c);
        break;
      case Kind::lone_word:
        inside = is_lone_word(c);
        break;
    }
    if (inside != item.negated) return true;
  }
  return false;
}

bool CharSet::has_slowly(char32_t c) const {
  bool inside = has_exactly(c);
  if (!inside && any_case_) {
    const char32_t small = fold(c), large = char32_t(utf8proc_toupper(utf8proc_int32_t(small)));
    inside = has_exactly(small) || has_exactly(large);
  }
  return inside != negated_;
}

void CharSet::finish(bool negated, bool any_case) {
  negated_ = negated, any_case_ = any_case;
  for (char32_t c = 0; c < 128; ++c) ascii_[c] = has_slowly(c);
}

Regex::Regex(std::string_view pattern, const std::string& place) : pattern_(pattern) {
  parse_regex(pattern, place, steps_, sets_);
}

std::optional<size_t> Regex::match_at(std::string_view text, size_t at, size_t& steps) const {
  return run(text, at, 0, steps);
}

std::optional<size_t> Regex::run(std::string_view text, size_t at, size_t step,
                                 size_t& steps) const {
  struct Way {  // go on at this step from `at`, or from fewer characters down to `least`
    size_t step, at, least;
  };
  std::vector<Way> open;
  const auto is_word_at = [&](size_t i) {
    return i < text.size() && is_lone_word(char_at(text, i));
  };
  for (;;) {
    if (steps-- == 0) {
      steps = 0;
      fail(fmt::format("the regular expression '{}' takes too long on this text", pattern_), "",
           "leave the text out, or use another model");
    }
    const Step& now = steps_[step];
    bool matches = true;
    switch (now.kind) {
      case Step::Kind::one:
        matches = at < text.size() && sets_[now.set].has(char_at(text, at));
        if (matches) at += bytes_of(text[at]), ++step;
        break;
      case Step::Kind::run: {
        const CharSet& set = sets_[now.set];
        size_t count = 0, least = at;
        while (count < now.max && at < text.size() && set.has(char_at(text, at))) {
          at += bytes_of(text[at]);
          if (++count == now.min) least = at;
        }
        matches = count >= now.min;
        ++step;
        if (matches && !now.possessive && at > least) open.push_back({step, at, least});
        break;
      }
      case Step::Kind::fork:
        open.push_back({now.other, at, at});
        step = now.to;
        break;
      case Step::Kind::jump:
        step = now.to;
        break;
      case Step::Kind::ahead:
        matches = run(text, at, step + 1, steps).has_value() != now.negated;
        step = now.to;
        break;
      case Step::Kind::atomic: {
        const auto end = run(text, at, step + 1, steps);
        matches = end.has_value();
        if (matches) at = *end;
        step = now.to;
        break;
      }
      case Step::Kind::begin:  // of any line, as for Ruby
        matches = at == 0 || (at < text.size() && text[at - 1] == '\n');
        ++step;
        break;
      case Step::Kind::end:
        matches = at == text.size() || text[at] == '\n';
        ++step;
        break;
      case Step::Kind::boundary:
        matches =
            ((at > 0 && is_lone_word(char_before(text, at))) != is_word_at(at)) != now.negated;
        ++step;
        break;
      case Step::Kind::done:
        return at;
    }
    if (matches) continue;
    if (open.empty()) return {};
    Way& way = open.back();
    step = way.step;
    if (way.at > way.least) {  // the longest of these failed
      do --way.at;
      while ((uint8_t(text[way.at]) & 0xC0) == 0x80);
      at = way.at;
      if (way.at == way.least) open.pop_back();
    } else {
      at = way.at;
      open.pop_back();
    }
  }
}

}  // namespace fungi::token
