// SPDX-License-Identifier: Apache-2.0
// Samples as the page shows them: pictures small, sounds as pictures that are played, texts with
// the words set off that another text lacks. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "fungi/input/dataset.h"

namespace fungi::report {

// The words of a text as they are compared: without capitals. A word is a run of letters, marks and
// digits; a character that fills two columns, as those of Chinese, is one by itself.
std::unordered_set<std::string> words_of(std::string_view text);

// As HTML, with those of its words marked that are not among these. Of a very long text the
// beginning.
std::string set_off(std::string_view text, const std::unordered_set<std::string>& known);

// The sounds that the page carries, each once, in the order in which they are shown.
class Clips {
 public:
  // The name that a button plays it by; empty: the sample is no sound, or there is no room for it.
  std::string add(const Sample& sample);
  std::string note() const;
  const std::string& html() const { return html_; }

 private:
  static constexpr size_t kSecond = 32000;  // bytes of 16 bits at 16 kHz
  static constexpr size_t kLongest = 5 * kSecond + 44, kMost = size_t{12} << 20;
  size_t bytes_ = 0, count_ = 0, left_out_ = 0;
  std::string html_;
};

// Samples of a data set by the ids of a store. One that has gone or been damaged since its
// extraction costs itself alone: its place is empty.
class Album {
 public:
  Album(const Dataset& data, DecodeOptions decode, Clips& clips);
  bool texts() const { return data_.samples() == SampleKind::text; }
  // An image element, described by `alt`; of a sound its spectrogram on a button that plays it.
  std::string image(const std::string& id, size_t side, const std::string& alt);
  std::string text(const std::string& id) const;

 private:
  const Dataset& data_;
  DecodeOptions decode_;
  Clips& clips_;
  std::unordered_map<std::string, size_t> place_;
  std::unordered_map<std::string, std::string> heard_;  // names of clips by id
};

}  // namespace fungi::report
