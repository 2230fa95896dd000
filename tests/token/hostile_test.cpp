// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of strangers: what is not understood is refused by name, and nothing takes for
// ever.
#include <gtest/gtest.h>

#include <thread>

#include "fungi/token/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/token/golden.h"

namespace fungi {
namespace {

using nlohmann::json;

json words() {
  return json::parse(R"({
    "version": "1.0",
    "truncation": {"max_length": 1, "strategy": "LongestFirst", "stride": 0},
    "padding": null,
    "added_tokens": [{"id": 2, "content": "[MASK]", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}})");
}

std::shared_ptr<const Tokenizer> open_json(const json& whole) {
  static const test::TemporaryFolder folder;
  return Tokenizer::open(folder.write("tokenizer.json", whole.dump()));
}
std::shared_ptr<const Tokenizer> open_with(const char* part, const std::string& text) {
  json whole = words();
  whole[part] = json::parse(text);
  return open_json(whole);
}

TEST(HostileTokenizer, PlainOneIsRead) {
  const auto tokenizer = open_json(words());
  EXPECT_EQ(tokenizer->encode("a").ids, (std::vector<int32_t>{1}));
  EXPECT_EQ(tokenizer->encode("a[MASK]a b").ids, (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(tokenizer->mask_id(), 2);
}

TEST(HostileTokenizer, UnknownPartsAreNamed) {
  EXPECT_ERROR("the normalizer 'Reverse' is none",
               open_with("normalizer", R"({"type":"Reverse"})"));
  EXPECT_ERROR("the pre_tokenizer 'UnicodeScripts' is none",
               open_with("pre_tokenizer", R"({"type":"UnicodeScripts"})"));
  EXPECT_ERROR(
      "the pre_tokenizer 'Reverse' is none",
      open_with("pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"Reverse"}]})"));
  EXPECT_ERROR("the post_processor 'Reverse'",
               open_with("post_processor", R"({"type":"Reverse"})"));
  EXPECT_ERROR("the model 'Reverse' is none", open_with("model", R"({"type":"Reverse"})"));
  EXPECT_ERROR("tokenizer.json: the normalizer", open_with("normalizer", R"({"type":"Reverse"})"));
  EXPECT_ERROR("'normalizer.backwards' is none that",
               open_with("normalizer", R"({"type":"NFC","backwards":true})"));
  EXPECT_ERROR("'pre_tokenizer.behavior' holds \"Around\"",
               open_with("pre_tokenizer",
                         R"({"type":"Split","pattern":{"String":"a"},"behavior":"Around"})"));
  EXPECT_ERROR(
      "'normalizer.content' holds \"$1\"",
      open_with("normalizer", R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"$1"})"));
  EXPECT_ERROR("'pre_tokenizer.behavior' is missing",
               open_with("pre_tokenizer", R"({"type":"Split","pattern":{"String":"a"}})"));
  EXPECT_ERROR("'model.dropout' holds 0.5",
               open_with("model", R"({"type":"BPE","dropout":0.5,"vocab":{},"merges":[]})"));
  EXPECT_ERROR("'post_processor.single' holds",
               open_with("post_processor",
                         R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}],
                             "special_tokens":{}})"));
}

TEST(HostileTokenizer, BrokenFilesAreErrors) {
  test::TemporaryFolder folder;
  const std::string good = words().dump();
  for (size_t size = 1; size < good.size(); ++size)
    EXPECT_ERROR("", Tokenizer::open(folder.write("tokenizer.json", good.substr(0, size))));
  EXPECT_ERROR("the field 'model' of a tokenizer", open_json(json::object()));
  EXPECT_ERROR("as the id of 'a'", open_with("model", R"({"vocab":{"[UNK]":0,"a":-1}})"));
  EXPECT_ERROR("as the id of 'a'", open_with("model", R"({"vocab":{"[UNK]":0,"a":99999999999}})"));
  EXPECT_ERROR("no '[UNK]'", open_with("model", R"({"vocab":{"a":0}})"));
  EXPECT_ERROR("pieces with their scores", open_with("model", R"({"vocab":[["a"]]})"));
  EXPECT_ERROR("unk_id", open_with("model", R"({"vocab":[["a",0.5]],"unk_id":1})"));
  EXPECT_ERROR("a list of pairs", open_with("model", R"({"vocab":{"a":0},"merges":["a"]})"));
  const std::string many = json(std::vector<int>(100000, 7)).dump();
  const std::string error =
      test::error_of([&] { open_with("model", R"({"vocab":{"a":0},"merges":)" + many + "}"); });
  EXPECT_NE(error.find("7,7,7..."), std::string::npos) << error.substr(0, 1000);
  EXPECT_LT(error.size(), 1000u);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"type":"Sequence","normalizers":[)";
  EXPECT_ERROR("", Tokenizer::open(folder.write("tokenizer.json", R"({"normalizer":)" + deep)));
}

std::string charsmap(const std::string& base64) {
  return R"({"type":"Precompiled","precompiled_charsmap":")" + base64 + "\"}";
}

TEST(HostileTokenizer, BrokenTablesOfReplacementsAreErrors) {
  for (const char* broken : {"", "AAAA", "AA!A", "////////", "BAAAAA==", "AwAAAAAAAA=="})
    EXPECT_ERROR("a table of replacements", open_with("normalizer", charsmap(broken)));
  // A trie of one unit that leads out of itself, for every text.
  const auto tokenizer = open_with("normalizer", charsmap("BAAAAP////8A"));
  EXPECT_EQ(tokenizer->encode("a").ids, (std::vector<int32_t>{1}));
}

std::string split_by(const std::string& pattern) {
  return json{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}
      .dump();
}

TEST(HostileTokenizer, RegularExpressionsThatAreNotUnderstood) {
  for (const char* pattern : {"(",
                              ")",
                              "a)",
                              "[a",
                              "[",
                              "[]",
                              "a{2",
                              "a{3,2}",
                              "a{9999}",
                              "*",
                              "a|*",
                              "(?<=a)b",
                              "(?<n>a)",
                              "\\p{Han}",
                              "\\p",
                              "\\p{",
                              "\\q",
                              "\\1",
                              "[z-a]",
                              "[[:alpha:]]",
                              "[a&&b]",
                              "\\x{110000}",
                              "\\",
                              "((((a{1000}){1000}){1000}){1000})",
                              "(((((){1000}){1000}){1000}){1000})"})
    EXPECT_ERROR("regular expression", open_with("pre_tokenizer", split_by(pattern)));
  std::string deep(5000, '(');
  EXPECT_ERROR("too deep", open_with("pre_tokenizer", split_by(deep)));
  EXPECT_ERROR("'\\q'", open_with("pre_tokenizer", split_by("ab\\q")));
}

TEST(HostileTokenizer, RegularExpressionsThatNeverEndAreStopped) {
  for (const char* pattern : {"(a*)*b", "(a|a)*b", "(a|aa)+$b", "(?:a?){50}a{50}b", "(|a)*b"}) {
    const auto tokenizer = open_with("pre_tokenizer", split_by(pattern));
    EXPECT_ERROR("takes too long", tokenizer->encode(std::string(60, 'a')));
  }
}

TEST(HostileTokenizer, TextsThatGrowWithoutEndAreStopped) {
  json doubling = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaa"}};
  const json growing = {{"type", "Sequence"}, {"normalizers", json::array()}};
  json normalizer = growing;
  for (int i = 0; i < 40; ++i) normalizer["normalizers"].push_back(doubling);
  EXPECT_ERROR("makes more than", open_with("normalizer", normalizer.dump())->encode("a"));
  json bytes = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
  for (int i = 0; i < 40; ++i)
    bytes["pretokenizers"].push_back({{"type", "ByteLevel"}, {"use_regex", false}});
  EXPECT_ERROR("makes more than", open_with("pre_tokenizer", bytes.dump())->encode("\u00E9"));
}

TEST(HostileTokenizer, UnknownCharactersWithoutAPieceForThemAreErrors) {
  const auto unigram = open_with("model", R"({"vocab":[["a",-1]]})");
  EXPECT_EQ(unigram->encode("aa").ids, (std::vector<int32_t>{0, 0}));
  EXPECT_ERROR("'b' is unknown", unigram->encode("ab"));
  const auto bpe = open_with("model", R"({"vocab":{"a":0},"merges":[],"unk_token":"<unk>"})");
  EXPECT_ERROR("'b' is unknown, and so is '<unk>'", bpe->encode("ab"));
}

TEST(HostileTokenizer, ThreadsShareOne) {
  const auto tokenizer = Tokenizer::open(test::token_golden() / "t5");
  const auto texts = test::nasty_texts();
  std::vector<std::vector<int32_t>> first, second;
  const auto encode_all = [&](auto& ids) {
    for (const std::string& text : texts) ids.push_back(tokenizer->encode(text).ids);
  };
  std::thread other([&] { encode_all(second); });
  encode_all(first);
  other.join();
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace fungi
