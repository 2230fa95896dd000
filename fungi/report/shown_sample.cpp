// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/shown_sample.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <functional>
#include <new>

#include "fungi/base/base64.h"
#include "fungi/base/error.h"
#include "fungi/input/shown.h"
#include "fungi/report/html.h"
#include "fungi/report/thumbnail.h"

namespace fungi::report {
namespace {

constexpr size_t kLongestText = 1000;  // bytes of a text that are shown

struct Character {
  utf8proc_int32_t code = -1;
  size_t bytes = 1;
};

// Of bytes that are no UTF-8: one that is no letter.
Character next(std::string_view text) {
  Character c;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      utf8proc_ssize_t(text.size()), &c.code);
  if (bytes > 0) c.bytes = size_t(bytes);
  return c;
}

bool is_of_a_word(utf8proc_int32_t code) {
  if (code < 0) return false;
  const utf8proc_category_t c = utf8proc_category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO;  // letters, marks, numbers
}

// Each piece of a text, in order: a word with the form that is compared, or what lies between, with
// none.
void for_each_piece(std::string_view text,
                    const std::function<void(std::string_view, const std::string&)>& piece) {
  for (size_t at = 0; at < text.size();) {
    std::string folded;
    const bool word = is_of_a_word(next(text.substr(at)).code);
    size_t end = at;
    while (end < text.size()) {
      const Character c = next(text.substr(end));
      const bool alone = word && utf8proc_charwidth(c.code) == 2;
      if (is_of_a_word(c.code) != word || (alone && end > at)) break;
      if (word) {
        utf8proc_uint8_t small[4];
        const auto size = utf8proc_encode_char(utf8proc_tolower(c.code), small);
        folded.append(reinterpret_cast<const char*>(small), size_t(size));
      }
      end += c.bytes;
      if (alone) break;
    }
    piece(text.substr(at, end - at), folded);
    at = end;
  }
}

}  // namespace

std::unordered_set<std::string> words_of(std::string_view text) {
  std::unordered_set<std::string> words;
  for_each_piece(text, [&](std::string_view, const std::string& folded) {
    if (!folded.empty()) words.insert(folded);
  });
  return words;
}

std::string set_off(std::string_view text, const std::unordered_set<std::string>& known) {
  std::string_view shown = text;
  if (text.size() > kLongestText) {
    size_t end = kLongestText;
    while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // not within a character
    shown = text.substr(0, end);
  }
  std::string out;
  for_each_piece(shown, [&](std::string_view piece, const std::string& folded) {
    const bool other = !folded.empty() && !known.contains(folded);
    out += other ? fmt::format("<mark>{}</mark>", html::escape(piece)) : html::escape(piece);
  });
  return shown.size() < text.size() ? out + " …" : out;
}

std::string Clips::add(const Sample& sample) {
  const std::vector<uint8_t> clip = clip_of(sample, kLongest);
  if (clip.empty()) return "";
  if (bytes_ + clip.size() > kMost) return ++left_out_, "";
  bytes_ += clip.size();
  const std::string name = fmt::format("clip{}", count_++);
  html_ += fmt::format("<audio id={} preload=none src=\"data:audio/wav;base64,{}\"></audio>", name,
                       to_base64(clip));
  return name;
}

std::string Clips::note() const {
  if (count_ + left_out_ == 0) return "";
  return fmt::format(
      "<p class=note>Pictures are spectrograms: time to the right, pitch upwards. Press one to "
      "hear "
      "its first {} seconds at most{}.</p>",
      kLongest / kSecond,
      left_out_
          ? fmt::format("; {} are silent, since the page carries no more than {} MB of sounds",
                        left_out_, kMost >> 20)
          : "");
}

Album::Album(const Dataset& data, DecodeOptions decode, Clips& clips)
    : data_(data), decode_(decode), clips_(clips) {
  for (size_t i = 0; i < data.size(); ++i) place_[data.id(i)] = i;
}

std::string Album::image(const std::string& id, size_t side, const std::string& alt) {
  std::string picture, clip;
  try {
    if (const auto place = place_.find(id); place != place_.end()) {
      const Sample sample = data_.decode(place->second, data_.read(place->second), decode_);
      picture = to_base64(thumbnail(picture_of(sample, side), side));
      clip = heard_.contains(id) ? heard_[id] : heard_[id] = clips_.add(sample);
    }
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {  // too large for the memory
  }
  const std::string shown =
      fmt::format("<img alt=\"{0}\" title=\"{0}\" src=\"data:image/webp;base64,{1}\">",
                  html::escape(alt), picture);
  if (clip.empty()) return shown;
  return fmt::format(
      "<button type=button class=play data-play={} aria-label=\"play {}\">{}</button>", clip,
      html::escape(alt), shown);
}

std::string Album::text(const std::string& id) const {
  try {
    if (const auto place = place_.find(id); place != place_.end())
      return text_of(data_.decode(place->second, data_.read(place->second))).utf8;
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  return "";
}

}  // namespace fungi::report
