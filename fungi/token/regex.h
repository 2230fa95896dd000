// SPDX-License-Identifier: Apache-2.0
// Regular expressions as the published tokenizers use them, with the rules of Oniguruma: sets of
// Unicode's categories, greedy, lazy and possessive repeats, looking ahead, case left aside. What
// is not known is refused by name, what takes too long on a text is an Error.
// Internal to this room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fungi::token {

// Characters by what they are.
class CharSet {
 public:
  enum class Kind : uint8_t { categories, range, space, word, lone_word };
  struct Item {
    Kind kind;
    bool negated = false;
    uint32_t categories = 0;
    char32_t first = 0, last = 0;
    bool operator==(const Item&) const = default;
  };
  void add(Item item) { items_.push_back(item); }
  void finish(bool negated, bool any_case);

  bool has(char32_t c) const { return c < 128 ? ascii_[c] : has_slowly(c); }
  bool operator==(const CharSet&) const = default;

 private:
  bool has_slowly(char32_t c) const;
  bool has_exactly(char32_t c) const;
  std::vector<Item> items_;
  std::array<bool, 128> ascii_{};
  bool negated_ = false, any_case_ = false;
};

class Regex {
 public:
  Regex(std::string_view pattern, const std::string& place);

  // The end of the match that begins at `at`. `steps` counts down.
  std::optional<size_t> match_at(std::string_view text, size_t at, size_t& steps) const;

  struct Step {
    enum class Kind : uint8_t {
      one,     // a character of sets[set]
      run,     // min to max of them, as many as possible, fewer if what follows wants that
      fork,    // to `to`; if that fails, to `other`
      jump,    // to `to`
      ahead,   // what stands from here to `to` matches here, or does not (negated)
      atomic,  // what stands from here to `to` matches, in its first way only
      begin,
      end,
      boundary,
      done,
    } kind;
    bool negated = false, possessive = false;
    uint32_t set = 0, min = 0, max = 0, to = 0, other = 0;
  };

 private:
  std::optional<size_t> run(std::string_view text, size_t at, size_t step, size_t& steps) const;
  std::vector<Step> steps_;
  std::vector<CharSet> sets_;
  std::string pattern_;
};

}  // namespace fungi::token
