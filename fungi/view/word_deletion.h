// SPDX-License-Identifier: Apache-2.0
// A text with some of its words left out, by two rules (WordDeletions): that of the paper's
// experiments (SPEC 5.6 and 10.2.3), which takes words and every other character but blanks apart
// and joins what is left by rules of its own, and the paper's, by which each word between blanks
// goes by itself. Internal to this room.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/random.h"

namespace fungi {

// Of valid UTF-8, which must stay where it is.
class DeletableWords {
 public:
  explicit DeletableWords(std::string_view text);

  const std::vector<std::string_view>& words() const { return words_; }
  // Those that may be left out: all but ASCII punctuation.
  const std::vector<size_t>& candidates() const { return candidates_; }
  // How many of them a share of all words is.
  size_t count(double share) const;
  // The text without these. A text with no candidates, or of one word, stays as it is.
  std::string without(std::span<const size_t> deleted) const;
  std::string draw(double share, TorchRandom& random) const;

 private:
  std::string_view text_;  // without blanks around it
  std::vector<std::string_view> words_;
  std::vector<size_t> candidates_;
};

// Each word between blanks is left out with that probability; one stays in any case.
std::string without_words(std::string_view text, double share, TorchRandom& random);

}  // namespace fungi
