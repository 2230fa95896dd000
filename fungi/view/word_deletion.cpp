// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/word_deletion.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"

namespace fungi {
namespace {

constexpr size_t kMostDeleted = 10;

struct Character {
  utf8proc_int32_t code;
  size_t bytes;
};

Character next(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      utf8proc_ssize_t(text.size()), &code);
  if (bytes <= 0) fail("the text is not valid UTF-8", "views of a text", "convert it to UTF-8");
  return {code, size_t(bytes)};
}

bool is_blank(utf8proc_int32_t code) {  // as Python's isspace()
  const utf8proc_property_t& p = *utf8proc_get_property(code);
  return p.category == UTF8PROC_CATEGORY_ZS || p.bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         p.bidi_class == UTF8PROC_BIDI_CLASS_B || p.bidi_class == UTF8PROC_BIDI_CLASS_S;
}

bool is_letter(utf8proc_category_t category) {
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_word_character(utf8proc_int32_t code) {  // as Python's \w
  const utf8proc_category_t category = utf8proc_category(code);
  return code == '_' || is_letter(category) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_ascii_punctuation(std::string_view word) {
  return word.size() == 1 && std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(word[0]) !=
                                 std::string_view::npos;
}

std::string_view without_blanks_around(std::string_view text) {
  size_t first = text.size(), last = 0;
  for (size_t at = 0; at < text.size();) {
    const Character c = next(text.substr(at));
    if (!is_blank(c.code)) first = std::min(first, at), last = at + c.bytes;
    at += c.bytes;
  }
  return first < last ? text.substr(first, last - first) : std::string_view();
}

// How the letters of a word are written, as far as it matters here.
struct Case {
  bool capital;  // a capital, and no other behind it
  bool small;    // letters with case, and none of them a capital
};

Case case_of(std::string_view word) {
  const Character first = next(word);
  size_t capitals = 0, small = 0, others = 0;
  for (size_t at = 0; at < word.size();) {
    const Character c = next(word.substr(at));
    const utf8proc_category_t category = utf8proc_category(c.code);
    capitals += category == UTF8PROC_CATEGORY_LU;
    small += category == UTF8PROC_CATEGORY_LL;
    others += category == UTF8PROC_CATEGORY_LT;
    at += c.bytes;
  }
  const bool begins = utf8proc_category(first.code) == UTF8PROC_CATEGORY_LU;
  return {begins && capitals == 1 && (small > 0 || first.bytes == word.size()),
          small > 0 && capitals == 0 && others == 0};
}

std::string capitalised(std::string_view word) {
  const Character c = next(word);
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(utf8proc_totitle(c.code), bytes);
  return std::string(reinterpret_cast<const char*>(bytes), size_t(count)) +
         std::string(word.substr(c.bytes));
}

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

constexpr std::string_view kEnds = ".,:;?!%";

// Takes away the blank before a run of punctuation that is followed by a blank, a quote or the end.
// What follows the run is read and cannot be the blank before the next one.
std::string close_up_ends(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == ' ')
      while (end < text.size() && is_one_of(text[end], kEnds)) ++end;
    const bool run = end > at + 1, followed = end < text.size() && is_one_of(text[end], " '\"`");
    if (run && followed) {
      out.append(text, at + 1, end - at);
      at = end + 1;
    } else {
      out += text[at++];
    }
  }
  size_t run = out.size();
  while (run > 0 && is_one_of(out[run - 1], kEnds)) --run;
  if (run < out.size() && run > 0 && out[run - 1] == ' ') out.erase(run - 1, 1);
  return out;
}

// One of these characters between two blanks loses one of them.
std::string close_up_brackets(const std::string& text, std::string_view brackets, bool before) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (at + 2 < text.size() && text[at] == ' ' && is_one_of(text[at + 1], brackets) &&
        text[at + 2] == ' ') {
      out += before ? std::string{text[at + 1], ' '} : std::string{' ', text[at + 1]};
      at += 3;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  text = close_up_ends(text);
  text = close_up_brackets(text, "[({<", false);
  text = close_up_brackets(text, "])}>", true);
  return std::string(without_blanks_around(text));
}

}  // namespace

DeletableWords::DeletableWords(std::string_view text) : text_(without_blanks_around(text)) {
  for (size_t at = 0; at < text_.size();) {
    Character c = next(text_.substr(at));
    size_t end = at + c.bytes;
    if (is_word_character(c.code)) {
      while (end < text_.size() && is_word_character((c = next(text_.substr(end))).code))
        end += c.bytes;
    } else if (is_blank(c.code)) {
      at = end;
      continue;
    }
    words_.push_back(text_.substr(at, end - at));
    if (!is_ascii_punctuation(words_.back())) candidates_.push_back(words_.size() - 1);
    at = end;
  }
}

size_t DeletableWords::count(double share) const {
  const auto wanted = size_t(std::ceil(share * double(words_.size())));
  return std::min(std::clamp<size_t>(wanted, 1, kMostDeleted), candidates_.size());
}

std::string DeletableWords::without(std::span<const size_t> deleted) const {
  if (words_.size() < 2 || deleted.empty()) return std::string(text_);
  std::vector<std::string> words(words_.begin(), words_.end());
  for (const size_t i : deleted) words[i].clear();
  // DEVIATION: the experiments' library gives the second word the first one's capital, and so puts
  // it back where it was to be left out, too.
  if (words[0].empty())
    words[1] = case_of(words_[0]).capital && case_of(words_[1]).small ? capitalised(words_[1])
                                                                      : std::string(words_[1]);
  std::erase(words, "");
  return joined(words);
}

std::string DeletableWords::draw(double share, TorchRandom& random) const {
  std::vector<size_t> pool = candidates_;
  const size_t wanted = count(share);
  for (size_t i = 0; i < wanted; ++i)  // the first steps of a shuffle
    std::swap(pool[i], pool[i + random.integer(uint32_t(pool.size() - i))]);
  return without(std::span(pool).first(wanted));
}

std::string without_words(std::string_view text, double share, TorchRandom& random) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size();) {
    const Character c = at < text.size() ? next(text.substr(at)) : Character{' ', 1};
    if (is_blank(c.code)) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + c.bytes;
    }
    at += c.bytes;
  }
  std::string out;
  const auto add = [&](std::string_view word) { (out += out.empty() ? "" : " ") += word; };
  for (const std::string_view word : words)
    if (double(random.uniform()) >= share) add(word);
  if (out.empty() && !words.empty()) add(words[random.integer(uint32_t(words.size()))]);
  return out;
}

}  // namespace fungi
