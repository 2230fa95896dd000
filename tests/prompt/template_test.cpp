// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/template.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

const std::vector<PromptExample> kTwo{{"one text", "a"}, {"{text} {{", "b"}};

std::string filled(const std::string& layout) {
  return PromptTemplate::parse(layout).fill("a, b", kTwo, "what is it ?");
}

TEST(PromptTemplate, FillsInAndRepeats) {
  EXPECT_EQ(filled("{labels}\n{examples}\n{text} -> {label}\n{end}\n{text} ->"),
            "a, b\none text -> a\n{text} {{ -> b\nwhat is it ? ->");
  EXPECT_EQ(filled("{labels}\n{examples}\n{text}\n\n  {label}\n\n{end}\n{text}"),
            "a, b\none text\n\n  a\n\n{text} {{\n\n  b\n\nwhat is it ?");
  // The label list may come last, the text first and again; braces of one's own are doubled.
  EXPECT_EQ(filled("{{{text}}}\n{examples}\n{label}{text}\n{end}\n{text}{labels}{{}}\n"),
            "{what is it ?}\naone text\nb{text} {{\nwhat is it ?a, b{}");
  // The line end of the last line is an editor's; those of other systems count as one.
  EXPECT_EQ(filled("{labels}\r\n{examples}\r\n{text}{label}\r\n{end}\r\n{text}\r\n"),
            "a, b\none texta\n{text} {{b\nwhat is it ?");
}

TEST(PromptTemplate, TheUsualOneHasThePartsOfThePaperInItsOrder) {
  const std::string prompt = PromptTemplate::usual().fill("a, b", kTwo, "what is it ?");
  std::vector<std::string> lines;
  for (size_t at = 0; at <= prompt.size();) {
    const size_t end = std::min(prompt.find('\n', at), prompt.size());
    lines.push_back(prompt.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 15u) << prompt;
  for (const size_t blank : {2, 4, 6, 11}) EXPECT_EQ(lines[blank], "") << blank;
  EXPECT_EQ(lines[3], "a, b");
  EXPECT_EQ(lines[7], "text: one text");
  EXPECT_EQ(lines[8], "label: a");
  EXPECT_EQ(lines[10], "label: b");
  EXPECT_EQ(lines[13], "text: what is it ?");
  EXPECT_EQ(lines[14], "label:") << "which is left to the model";
}

TEST(PromptTemplate, IsShownInTheDocuments) {
  const std::string cli = test::read_file(FUNGI_SOURCE_DIR "/docs/cli.md");
  EXPECT_NE(cli.find("```\n" + std::string(PromptTemplate::usual_text()) + "\n```"),
            std::string::npos);
}

TEST(PromptTemplate, NamesWhatIsWrongAndWhere) {
  const std::string examples = "{examples}\n{text}{label}\n{end}\n";
  const auto parse = [](const std::string& text) { PromptTemplate::parse(text, "file"); };
  EXPECT_ERROR("file, line 2: there is no placeholder {query}", parse("{labels}\n{query}"));
  EXPECT_ERROR("there is no placeholder {Text}", parse("{labels}\n" + examples + "{Text}"));
  EXPECT_ERROR("line 1: a '{' that belongs to no placeholder", parse("a { b"));
  EXPECT_ERROR("line 1: a '}' that belongs to no placeholder", parse("a } b"));
  EXPECT_ERROR("line 2: {end} stands without", parse("{labels}\n{end}"));
  EXPECT_ERROR("line 2: the examples that begin here have no line {end}",
               parse("{labels}{text}\n{examples}\n{text}{label}"));
  EXPECT_ERROR("line 4: {examples} stands there again", parse(examples + examples));
  EXPECT_ERROR("line 1: {examples} stands beside other words", parse("{examples} x"));
  EXPECT_ERROR("line 2: {end} stands beside other words", parse("{examples}\n {end}"));
  EXPECT_ERROR("line 1: {label} stands outside", parse("{label}"));
  EXPECT_ERROR("line 2: {labels} stands within", parse("{examples}\n{labels}"));
  EXPECT_ERROR("do not show {label}", parse("{labels}{text}\n{examples}\n{text}\n{end}\n"));
  EXPECT_ERROR("do not show {text}", parse("{labels}{text}\n{examples}\n{label}\n{end}\n"));
  EXPECT_ERROR("expected {labels}", parse("{text}\n" + examples));
  EXPECT_ERROR("expected {text} outside", parse("{labels}\n" + examples));
  EXPECT_ERROR("expected a line {examples}", parse("{labels}{text}"));
  EXPECT_ERROR("expected a line {examples}", parse(""));
  EXPECT_ERROR("expected UTF-8, found the byte 0xff", parse("{labels}\xff"));
  EXPECT_ERROR("nowhere", PromptTemplate::read("nowhere"));
}

}  // namespace
}  // namespace fungi
