// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/base/utf8.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

constexpr std::string_view kUsual =
    R"(Your task is to give short texts the label that fits them.
Choose one label, and only one, from this list:

{labels}

Answer with the name of the label and with nothing else. Some texts with their labels:

{examples}
text: {text}
label: {label}
{end}

Which label has this one?
text: {text}
label:)";

constexpr const char* kChoices =
    "the placeholders are {labels}, {text}, and {label} between the lines {examples} and {end}; "
    "write {{ or }} for a brace";

}  // namespace

// Goes through the lines once; every piece joins the list of the part that it stands in.
class PromptTemplate::Reader {
 public:
  Reader(PromptTemplate& out, const std::string& place) : out_(out), place_(place) {}

  void read(std::string_view text) {
    if (const auto bad = first_bad_byte(text))
      fail(fmt::format("expected UTF-8, found {}", describe_bad_byte(text, *bad)), place_,
           "save the template as UTF-8");
    if (text.ends_with('\n')) text.remove_suffix(1);  // an editor's
    for (size_t line = 1;; ++line) {
      const size_t end = text.find('\n');
      std::string_view words = text.substr(0, end);
      if (words.ends_with('\r')) words.remove_suffix(1);
      read_line(words, line, end == std::string_view::npos);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    require_whole();
  }

 private:
  void read_line(std::string_view words, size_t line, bool last) {
    if (words == "{examples}") {
      if (list_ != &out_.before_) refuse(line, "{examples} stands there again", "keep one of them");
      opened_ = line;
      list_ = &out_.example_;
    } else if (words == "{end}") {
      if (list_ != &out_.example_)
        refuse(line, "{end} stands without a line {examples} above it", kChoices);
      list_ = &out_.after_;
    } else {
      read_words(words, line);
      if (!last) add_words("\n");
    }
  }

  void read_words(std::string_view words, size_t line) {
    while (!words.empty()) {
      const size_t brace = std::min(words.find_first_of("{}"), words.size());
      add_words(words.substr(0, brace));
      words.remove_prefix(brace);
      if (words.empty()) return;
      if (words.starts_with("{{") || words.starts_with("}}")) {
        add_words(words.substr(0, 1));
        words.remove_prefix(2);
        continue;
      }
      const size_t end = words.find('}');
      if (words[0] == '}' || end == std::string_view::npos)
        refuse(line, fmt::format("a '{}' that belongs to no placeholder", words[0]), kChoices);
      add_placeholder(words.substr(0, end + 1), line);
      words.remove_prefix(end + 1);
    }
  }

  void add_placeholder(std::string_view word, size_t line) {
    const bool in_example = list_ == &out_.example_;
    if (word == "{text}")
      list_->push_back({Part::text, ""});
    else if (word == "{labels}" && !in_example)
      list_->push_back({Part::labels, ""});
    else if (word == "{label}" && in_example)
      list_->push_back({Part::label, ""});
    else if (word == "{examples}" || word == "{end}")
      refuse(line, fmt::format("{} stands beside other words", word), "give it a line of its own");
    else if (word == "{label}")
      refuse(line, "{label} stands outside the examples: the label of the text is what is asked",
             kChoices);
    else if (word == "{labels}")
      refuse(line, "{labels} stands within the examples, which would repeat the list",
             "put it above the line {examples}");
    else
      refuse(line, fmt::format("there is no placeholder {}", word), kChoices);
  }

  void add_words(std::string_view words) {
    if (words.empty()) return;
    if (list_->empty() || list_->back().part != Part::words) list_->push_back({Part::words, ""});
    list_->back().words += words;
  }

  void require_whole() const {
    const auto has = [](const std::vector<Piece>& list, Part part) {
      return std::any_of(list.begin(), list.end(), [&](const Piece& p) { return p.part == part; });
    };
    if (opened_ == 0) fail("expected a line {examples}, found none", place_, kChoices);
    if (list_ == &out_.example_)
      refuse(opened_, "the examples that begin here have no line {end}", kChoices);
    for (const auto& [part, name] :
         {std::pair(Part::text, "{text}"), std::pair(Part::label, "{label}")})
      if (!has(out_.example_, part))
        refuse(opened_, fmt::format("the examples that begin here do not show {}", name), kChoices);
    if (!has(out_.before_, Part::labels) && !has(out_.after_, Part::labels))
      fail("expected {labels}, found it nowhere", place_, kChoices);
    if (!has(out_.before_, Part::text) && !has(out_.after_, Part::text))
      fail("expected {text} outside the examples, found it nowhere", place_, kChoices);
  }

  [[noreturn]] void refuse(size_t line, const std::string& what, const char* hint) const {
    fail(what, fmt::format("{}, line {}", place_, line), hint);
  }

  PromptTemplate& out_;
  const std::string& place_;
  std::vector<Piece>* list_ = &out_.before_;
  size_t opened_ = 0;  // the line of {examples}
};

PromptTemplate PromptTemplate::parse(std::string_view text, const std::string& place) {
  PromptTemplate out;
  Reader(out, place).read(text);
  return out;
}

PromptTemplate PromptTemplate::read(const std::filesystem::path& file) {
  return parse(store::read_text(file), file.string());
}

std::string_view PromptTemplate::usual_text() { return kUsual; }

std::string PromptTemplate::fill(std::string_view labels, std::span<const PromptExample> examples,
                                 std::string_view text) const {
  std::string out;
  const auto add = [&](const std::vector<Piece>& list, std::string_view own,
                       std::string_view label) {
    for (const Piece& piece : list) switch (piece.part) {
        case Part::words:
          out += piece.words;
          break;
        case Part::labels:
          out += labels;
          break;
        case Part::text:
          out += own;
          break;
        case Part::label:
          out += label;
          break;
      }
  };
  add(before_, text, "");
  for (const PromptExample& one : examples) add(example_, one.text, one.label);
  add(after_, text, "");
  return out;
}

}  // namespace fungi
