// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/regex_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fungi/base/error.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

using Step = Regex::Step;
using Item = CharSet::Item;

constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
constexpr unsigned kDeepest = 32;
constexpr uint32_t kMostRepeats = 1000;
constexpr size_t kMostSteps = 10000;

struct Node {
  enum class Kind { set, sequence, choice, repeat, ahead, atomic, begin, end, boundary } kind;
  bool negated = false, lazy = false, possessive = false;
  uint32_t set = 0, min = 0, max = 0;
  std::vector<Node> parts;
};

Item range(char32_t first, char32_t last) { return {CharSet::Kind::range, false, 0, first, last}; }

class Parser {
 public:
  Parser(std::string_view pattern, const std::string& place, std::vector<CharSet>& sets)
      : pattern_(pattern), place_(place), sets_(sets) {
    if (first_invalid_byte(pattern)) refuse("it is no UTF-8");
  }

  Node whole() {
    any_case_ = take("(?i)");
    Node all = choice(0);
    if (!done()) refuse("')' closes nothing");
    return all;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(fmt::format("the regular expression '{}' is not understood: {}", pattern_, why), place_,
         "use a model whose tokenizer splits texts in one of the usual ways");
  }

 private:
  bool done() const { return at_ == pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_char() {
    if (done()) refuse("it ends too early");
    return next_char(pattern_, at_);
  }

  Node choice(unsigned depth) {
    if (depth > kDeepest) refuse("its brackets are too deep");
    Node all{Node::Kind::choice};
    do all.parts.push_back(sequence(depth));
    while (take("|"));
    if (all.parts.size() > 1) return all;
    return std::move(all.parts[0]);
  }

  Node sequence(unsigned depth) {
    Node all{Node::Kind::sequence};
    while (!done() && !next_is("|") && !next_is(")")) {
      Node part = atom(depth);
      while (std::optional<Node> repeat = repeats()) {
        repeat->parts.push_back(std::move(part));
        part = std::move(*repeat);
      }
      all.parts.push_back(std::move(part));
    }
    return all;
  }

  std::optional<Node> repeats() {
    Node node{Node::Kind::repeat};
    bool counted = false;
    if (take("?"))
      node.max = 1;
    else if (take("*"))
      node.max = kNoLimit;
    else if (take("+"))
      node.min = 1, node.max = kNoLimit;
    else if (next_is("{"))
      take_counts(node), counted = true;
    else
      return {};
    node.lazy = take("?");
    // In Oniguruma's rules a plus behind a count repeats what was counted.
    node.possessive = !node.lazy && !counted && take("+");
    return node;
  }

  void take_counts(Node& node) {
    ++at_;
    const auto number = [&]() -> std::optional<uint32_t> {
      uint32_t value = 0;
      const size_t begin = at_;
      for (; !done() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_)
        if ((value = 10 * value + uint32_t(pattern_[at_] - '0')) > kMostRepeats)
          refuse("it repeats too often");
      if (at_ == begin) return {};
      return value;
    };
    const auto min = number();
    node.min = min.value_or(0), node.max = node.min;
    const bool comma = take(",");
    const auto max = comma ? number() : min;
    if (comma) node.max = max.value_or(kNoLimit);
    if ((!min && !max) || !take("}") || node.max < node.min) refuse("a count in braces is wrong");
  }

  Node group(Node node, unsigned depth) {
    node.parts.push_back(choice(depth + 1));
    if (!take(")")) refuse("a bracket is not closed");
    return node;
  }

  Node atom(unsigned depth) {
    if (take("(?:")) return group({Node::Kind::sequence}, depth);
    if (take("(?=")) return group({Node::Kind::ahead}, depth);
    if (take("(?!")) return group({Node::Kind::ahead, true}, depth);
    if (take("(?>")) return group({Node::Kind::atomic}, depth);
    if (take("(?i:")) {
      const bool before = any_case_;
      any_case_ = true;
      Node inside = group({Node::Kind::sequence}, depth);
      any_case_ = before;
      return inside;
    }
    if (next_is("(?")) refuse(fmt::format("the group '{}'", pattern_.substr(at_, 4)));
    if (take("(")) return group({Node::Kind::sequence}, depth);
    if (take("^")) return {Node::Kind::begin};
    if (take("$")) return {Node::Kind::end};
    if (take("\\b")) return {Node::Kind::boundary};
    if (take("\\B")) return {Node::Kind::boundary, true};
    CharSet set;
    if (take("[")) return bracket();
    if (take(".")) {
      set.add(range('\n', '\n'));
      return node_of(std::move(set), true);
    }
    if (next_is("*") || next_is("+") || next_is("?")) refuse("a repeat of nothing");
    Item item = next_is("\\") ? escape() : literal();
    if (item.kind == CharSet::Kind::word) item.kind = CharSet::Kind::lone_word;
    set.add(item);
    return node_of(std::move(set), false);
  }

  Item literal() {
    const char32_t c = take_char();
    return range(c, c);
  }

  Node node_of(CharSet set, bool negated) {
    set.finish(negated, any_case_);
    const auto same = std::find(sets_.begin(), sets_.end(), set);
    Node node{Node::Kind::set};
    node.set = uint32_t(same - sets_.begin());
    if (same == sets_.end()) sets_.push_back(std::move(set));
    return node;
  }

  Node bracket() {
    CharSet set;
    const bool negated = take("^");
    for (bool first = true; first || !take("]"); first = false) {
      if (next_is("[") || next_is("&&")) refuse("sets inside of sets");
      Item item = next_is("\\") ? escape() : literal();
      const bool single = item.kind == CharSet::Kind::range && !item.negated;
      if (single && next_is("-") && !next_is("-]")) {
        ++at_;
        const Item last = next_is("\\") ? escape() : literal();
        if (last.kind != CharSet::Kind::range || last.negated || last.last < item.first)
          refuse("a range in a set ends before it begins");
        item.last = last.last;
      }
      set.add(item);
    }
    return node_of(std::move(set), negated);
  }

  Item escape() {
    ++at_;
    const char32_t c = take_char();
    const Categories digits = *categories_named("Nd");
    switch (c) {
      case 's':
        return {CharSet::Kind::space};
      case 'S':
        return {CharSet::Kind::space, true};
      case 'w':
        return {CharSet::Kind::word};
      case 'W':
        return {CharSet::Kind::word, true};
      case 'd':
        return {CharSet::Kind::categories, false, digits};
      case 'D':
        return {CharSet::Kind::categories, true, digits};
      case 'n':
        return range('\n', '\n');
      case 'r':
        return range('\r', '\r');
      case 't':
        return range('\t', '\t');
      case 'f':
        return range('\f', '\f');
      case 'v':
        return range('\v', '\v');
      case 'p':
      case 'P':
        return property(c == 'P');
      case 'x':
        return hexadecimal(next_is("{") ? 0 : 2);
      case 'u':
        return hexadecimal(4);
      default:
        break;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128)
      refuse(fmt::format("'\\{}'", pattern_.substr(at_ - bytes_of_char(c), bytes_of_char(c))));
    return range(c, c);
  }
  static size_t bytes_of_char(char32_t c) {
    std::string text;
    append_char(text, c);
    return text.size();
  }

  Item property(bool negated) {
    if (!take("{")) refuse("'\\p' without braces");
    if (take("^")) negated = !negated;
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) refuse("a brace is not closed");
    const std::string_view name = pattern_.substr(at_, end - at_);
    at_ = end + 1;
    const auto categories = categories_named(name);
    if (!categories) refuse(fmt::format("the property '{}'", name));
    return {CharSet::Kind::categories, negated, *categories};
  }

  Item hexadecimal(size_t digits) {  // 0: in braces
    const bool braces = digits == 0 && take("{");
    char32_t value = 0;
    size_t count = 0;
    for (; !done() && count < (braces ? 6 : digits); ++count, ++at_) {
      const char c = pattern_[at_];
      const bool small = c >= 'a' && c <= 'f', large = c >= 'A' && c <= 'F';
      if (!small && !large && !(c >= '0' && c <= '9')) break;
      value = 16 * value + char32_t(small ? c - 'a' + 10 : large ? c - 'A' + 10 : c - '0');
    }
    if (count == 0 || (!braces && count < digits) || (braces && !take("}")) || value > 0x10FFFF)
      refuse("the number of a character is wrong");
    return range(value, value);
  }

  std::string_view pattern_;
  const std::string& place_;
  std::vector<CharSet>& sets_;
  size_t at_ = 0;
  bool any_case_ = false;
};

class Writer {
 public:
  Writer(const Parser& parser, std::vector<Step>& steps) : parser_(parser), steps_(steps) {}

  void write(const Node& node) {
    if (++written_ > kMostSteps) parser_.refuse("it is too large");  // empty groups write nothing
    switch (node.kind) {
      case Node::Kind::set:
        add({Step::Kind::one}).set = node.set;
        break;
      case Node::Kind::sequence:
        for (const Node& part : node.parts) write(part);
        break;
      case Node::Kind::choice:
        write_choice(node);
        break;
      case Node::Kind::repeat:
        write_repeat(node);
        break;
      case Node::Kind::ahead:
        write_apart(Step::Kind::ahead, node.negated, node.parts[0]);
        break;
      case Node::Kind::atomic:
        write_apart(Step::Kind::atomic, false, node.parts[0]);
        break;
      case Node::Kind::begin:
        add({Step::Kind::begin});
        break;
      case Node::Kind::end:
        add({Step::Kind::end});
        break;
      case Node::Kind::boundary:
        add({Step::Kind::boundary, node.negated});
        break;
    }
  }
  Step& add(Step step) {
    if (steps_.size() == kMostSteps) parser_.refuse("it is too large");
    return steps_.push_back(step), steps_.back();
  }

 private:
  uint32_t here() const { return uint32_t(steps_.size()); }

  void write_choice(const Node& node) {
    std::vector<size_t> ends;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const bool last = i + 1 == node.parts.size();
      const size_t fork = here();
      if (!last) add({Step::Kind::fork});
      write(node.parts[i]);
      if (last) break;
      ends.push_back(here());
      add({Step::Kind::jump});
      steps_[fork].to = uint32_t(fork + 1), steps_[fork].other = here();
    }
    for (const size_t end : ends) steps_[end].to = here();
  }

  void write_apart(Step::Kind kind, bool negated, const Node& part) {
    const size_t start = here();
    add({kind, negated});
    write(part);
    add({Step::Kind::done});
    steps_[start].to = here();
  }

  void write_repeat(const Node& node) {
    const Node& part = node.parts[0];
    if (part.kind == Node::Kind::set && !node.lazy) {
      Step run{Step::Kind::run, false, node.possessive, part.set, node.min, node.max};
      return void(add(run));
    }
    if (node.possessive) {
      Node greedy = node;
      greedy.possessive = false;
      return write_apart(Step::Kind::atomic, false, greedy);
    }
    for (uint32_t i = 0; i < node.min; ++i) write(part);
    std::vector<size_t> forks;
    const auto fork = [&] {
      forks.push_back(here());
      add({Step::Kind::fork});
    };
    if (node.max == kNoLimit) {
      fork();
      write(part);
      add({Step::Kind::jump}).to = uint32_t(forks[0]);
    } else {
      for (uint32_t i = node.min; i < node.max; ++i) fork(), write(part);
    }
    for (const size_t at : forks) {
      steps_[at].to = uint32_t(at + 1), steps_[at].other = here();
      if (node.lazy) std::swap(steps_[at].to, steps_[at].other);
    }
  }

  const Parser& parser_;
  std::vector<Step>& steps_;
  size_t written_ = 0;
};

}  // namespace

void parse_regex(std::string_view pattern, const std::string& place, std::vector<Step>& steps,
                 std::vector<CharSet>& sets) {
  Parser parser(pattern, place, sets);
  const Node all = parser.whole();
  Writer writer(parser, steps);
  writer.write(all);
  writer.add({Step::Kind::done});
}

}  // namespace fungi::token
