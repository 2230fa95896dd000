// SPDX-License-Identifier: Apache-2.0
// Which column of a list of texts holds what: stated, told by a header, or guessed from the rows.
#include <gtest/gtest.h>

#include "tests/input/text_rows.h"

namespace fungi {
namespace {

using namespace testing;

std::string only_note(const std::string& name, std::string_view content,
                      DatasetOptions options = {}) {
  const auto notes = notes_of_text(name, content, std::move(options));
  return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
}

const char* const kSpam =
    "ham\tsee you at the station\nspam\twin a prize now\nham\tdinner at six?\n";

TEST(TextColumns, AHeaderIsKnownByItsNames) {
  EXPECT_EQ(rows_of_text("l.csv", "Index, TEXT ,Intent\n0,a b,x\n1,c d,y\n"),
            (TextRows{{"2", "x", "a b"}, {"3", "y", "c d"}}));
  EXPECT_EQ(rows_of_text("l.csv", "text\nx\ntext\n").size(), 3u)
      << "a name that occurs again below is a cell";
  EXPECT_EQ(rows_of_text("l.csv", "label,text\nx,text\n"), (TextRows{{"2", "x", "text"}}))
      << "of two names one does not";
  EXPECT_EQ(rows_of_text("l.tsv", "sentence\nfirst of all\n"),
            (TextRows{{"2", "", "first of all"}}));
  EXPECT_EQ(rows_of_text("l.csv", "title,content,label\nt,c,x\n"), (TextRows{{"2", "x", "c"}}));
  EXPECT_EQ(only_note("l.csv", "title,content,label\nt,c,x\n"),
            "the columns are 'title', 'content', 'label': column 'content' holds the texts and "
            "column 'label' the labels; `text_column` and `label_column` state others");
  EXPECT_EQ(only_note("l.csv", "text,date\na,1\nb,1\n"),
            "the columns are 'text', 'date': column 'text' holds the texts and none labels; "
            "`text_column` and `label_column` state others");
}

TEST(TextColumns, WithoutAHeaderTheRowsTell) {
  EXPECT_EQ(rows_of_text("l.tsv", kSpam), (TextRows{{"1", "ham", "see you at the station"},
                                                    {"2", "spam", "win a prize now"},
                                                    {"3", "ham", "dinner at six?"}}));
  EXPECT_EQ(only_note("l.tsv", kSpam),
            "the first line is no header: by the look of the lines column 2 holds the texts and "
            "column 1 the labels; `text_column` and `label_column` state others");
  EXPECT_EQ(rows_of_text("l.tsv", "question\tWho was it?\nanswer\tNobody knows.\nquestion\tWhy?\n")
                .size(),
            3u)
      << "a class may have the name of a column";
  // A column of numbers that all differ tells no class; in three rows it might.
  std::string numbered;
  for (int i = 0; i < 12; ++i)
    numbered += std::to_string(100 + i) + ",the text of row " + std::to_string(i) + "," +
                (i % 2 ? "odd" : "even") + ",train\n";
  const TextRows rows = rows_of_text("l.csv", numbered);
  EXPECT_EQ(rows[0], (TextRow{"1", "even", "the text of row 0"}));
  EXPECT_EQ(rows_of_text("l.csv", "1,one text\n2,two texts\n")[0].label, "1");
}

TEST(TextColumns, UnknownNamesAboveTextsAreAHeader) {
  const std::string rows =
      "x1,how do I get there\nx1,what does it cost\nx2,where is my card\nx2,is it open today\n";
  EXPECT_EQ(rows_of_text("l.csv", "klass,utt\n" + rows)[0],
            (TextRow{"2", "x1", "how do I get there"}));
  EXPECT_EQ(rows_of_text("l.csv", rows)[0], (TextRow{"1", "x1", "how do I get there"}));
  EXPECT_EQ(only_note("l.csv", "klass,utt\n" + rows),
            "the columns are 'klass', 'utt': by the look of the lines column 'utt' holds the texts "
            "and column 'klass' the labels; `text_column` and `label_column` state others");
}

TEST(TextColumns, WhatIsStatedCounts) {
  const std::string rows = "a b,x,5\nc d,y,6\n", named = "first,second,text\n" + rows;
  EXPECT_EQ(rows_of_text("l.csv", named, {.text_column = "First", .label_column = "second"}),
            (TextRows{{"2", "x", "a b"}, {"3", "y", "c d"}}));
  EXPECT_EQ(rows_of_text("l.csv", rows, {.text_column = "1", .label_column = "3"}),
            (TextRows{{"1", "5", "a b"}, {"2", "6", "c d"}}));
  EXPECT_EQ(rows_of_text("l.csv", named, {.text_column = "1", .label_column = "none"}),
            (TextRows{{"2", "", "a b"}, {"3", "", "c d"}}));
  EXPECT_EQ(rows_of_text("l.csv", named, {.label_column = "second"})[0], (TextRow{"2", "x", "5"}))
      << "the text is guessed, from the header";
  EXPECT_TRUE(notes_of_text("l.csv", named, {.text_column = "1", .label_column = "2"}).empty());
  EXPECT_EQ(rows_of_text("l.tsv", "utterance_of_user\tcard lost\nhelp\tyes\n",
                         {.text_column = "utterance_of_user", .label_column = "card lost"}),
            (TextRows{{"2", "yes", "help"}}));
  EXPECT_EQ(rows_of_text("l.jsonl", "{\"a\": \"x y\", \"b\": \"u\", \"text\": \"z\"}",
                         {.text_column = "a", .label_column = "b"}),
            (TextRows{{"1", "u", "x y"}}));
  EXPECT_ERROR("there is no column 'body'; the first line is 'first', 'second', 'text'",
               rows_of_text("l.csv", named, {.text_column = "body"}));
  EXPECT_ERROR("a number from 1 to 3", rows_of_text("l.csv", named, {.label_column = "4"}));
  EXPECT_ERROR("there is no column '1'",
               rows_of_text("l.jsonl", "{\"text\": \"x\"}", {.text_column = "1"}));
  EXPECT_ERROR("the column 'second' is stated twice",
               rows_of_text("l.csv", named,
                            {.text_column = "first", .label_column = "second", .id_column = "2"}));
  EXPECT_ERROR("no column left for the texts",
               rows_of_text("l.csv", "a b\nc d\n", {.label_column = "1"}));
}

TEST(TextColumns, KeysOfJsonAreAHeader) {
  EXPECT_EQ(rows_of_text("l.jsonl",
                         "{\"Label\": \"x\", \"Sentence\": \"a b\"}\n"
                         "{\"Sentence\": \"c d\", \"Label\": \"y\", \"more\": 1}\n"),
            (TextRows{{"1", "x", "a b"}, {"2", "y", "c d"}}));
  EXPECT_EQ(rows_of_text("l.jsonl",
                         "{\"kind\": \"x\", \"said\": \"a b c\"}\n"
                         "{\"kind\": \"x\", \"said\": \"d e f\"}\n"),
            (TextRows{{"1", "x", "a b c"}, {"2", "x", "d e f"}}));
}

TEST(TextColumns, OnlyListsOfTextsHaveThem) {
  const test::TemporaryFolder root;
  root.write("a/1.txt", "one");
  root.write("pictures.csv", "a.jpg,1\n");
  EXPECT_ERROR("only lists have columns", open_texts(root / "a", {.text_column = "text"}));
  EXPECT_ERROR("only lists of texts have columns",
               open_dataset(root / "pictures.csv", {.label_column = "2"}));
}

}  // namespace
}  // namespace fungi
