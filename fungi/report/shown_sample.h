// SPDX-License-Identifier: Apache-2.0
// Samples as the page shows them: pictures small, texts with the words set off that another text
// lacks. Internal to this room.
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

// Samples of a data set by the ids of a store. One that has gone or been damaged since its
// extraction costs itself alone: its place is empty.
class Album {
 public:
  Album(const Dataset& data, DecodeOptions decode);
  bool texts() const { return data_.samples() == SampleKind::text; }
  // An image element, described by `alt`.
  std::string image(const std::string& id, size_t side, const std::string& alt) const;
  std::string text(const std::string& id) const;

 private:
  const Dataset& data_;
  DecodeOptions decode_;
  std::unordered_map<std::string, size_t> place_;
};

}  // namespace fungi::report
