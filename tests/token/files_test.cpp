// SPDX-License-Identifier: Apache-2.0
// Files of the time before tokenizer.json: the same ids as by the tokenizer.json of the same model.
#include <gtest/gtest.h>

#include "fungi/token/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/token/golden.h"

namespace fungi {
namespace {

using nlohmann::json;

json tokenizer_json(const std::string& name) {
  return test::golden_json(test::token_golden() / name / "tokenizer.json");
}

// The vocabulary of a byte-level tokenizer in its older shape, added tokens among the pieces.
void write_byte_level(const test::TemporaryFolder& folder, const std::string& name) {
  const json whole = tokenizer_json(name);
  json vocabulary = whole["model"]["vocab"];
  for (const json& token : whole["added_tokens"]) vocabulary[token["content"]] = token["id"];
  folder.write("vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const json& pair : whole["model"]["merges"])
    merges += pair[0].get<std::string>() + " " + pair[1].get<std::string>() + "\n";
  folder.write("merges.txt", merges);
}

void expect_golden_ids(const Tokenizer& tokenizer, const std::string& name) {
  const auto texts = test::nasty_texts();
  const json expected = test::golden_json(test::token_golden() / name / "ids.json");
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(test::short_form(tokenizer.encode(texts[i]).ids), expected[i]) << i;
}

TEST(TokenizerFiles, VocabJsonIsRoberta) {
  test::TemporaryFolder folder;
  write_byte_level(folder, "roberta");
  const auto tokenizer = Tokenizer::open(folder.path());
  expect_golden_ids(*tokenizer, "roberta");
  EXPECT_EQ(tokenizer->mask_id(), 520);
  EXPECT_EQ(tokenizer->vocabulary_size(), 521u);
  EXPECT_EQ(tokenizer->describe(), "BPE, 521 pieces, vocab.json");
  for (const int special : {0, 1, 2, 3, 520}) EXPECT_TRUE(tokenizer->is_special(special));
  const std::string before = tokenizer->fingerprint();
  test::write_file(folder / "merges.txt", "#version: 0.2\n");
  EXPECT_NE(Tokenizer::open(folder.path())->fingerprint(), before);
}

TEST(TokenizerFiles, VocabJsonIsClip) {
  test::TemporaryFolder folder;
  write_byte_level(folder, "clip");
  expect_golden_ids(*Tokenizer::open(folder / "vocab.json"), "clip");
}

TEST(TokenizerFiles, VocabTxtIsBert) {
  const json whole = tokenizer_json("bert_uncased");
  std::map<int, std::string> lines;
  for (const auto& [piece, id] : whole["model"]["vocab"].items()) lines[id] = piece;
  std::string text;
  for (const auto& [id, piece] : lines) text += piece + "\n";
  test::TemporaryFolder folder;
  expect_golden_ids(*Tokenizer::open(folder.write("vocab.txt", text)), "bert_uncased");
}

TEST(TokenizerFiles, VocabTxtOfMpnet) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", "<s>\n<pad>\n</s>\n[UNK]\na\nb\n<mask>\n");
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer->encode("a  <mask>b").ids, (std::vector<int32_t>{0, 4, 6, 5, 2}));
  EXPECT_EQ(tokenizer->mask_id(), 6);
}

TEST(TokenizerFiles, TokenizerJsonGoesFirst) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
  folder.write("tokenizer.json", tokenizer_json("roberta").dump());
  EXPECT_EQ(Tokenizer::open(folder.path())->describe(), "BPE, 520 pieces, tokenizer.json");
}

TEST(TokenizerFiles, BrokenOnesAreNamed) {
  test::TemporaryFolder folder;
  folder.write("vocab.json", R"({"a": 0, "b": 1})");
  folder.write("merges.txt", "a b\n");
  EXPECT_ERROR("every part of the merge 'a b' in the vocabulary, found no 'ab'",
               Tokenizer::open(folder.path()));
  test::write_file(folder / "merges.txt", "ab\n");
  EXPECT_ERROR("merges.txt: expected two pieces", Tokenizer::open(folder.path()));
  test::write_file(folder / "vocab.json", R"({"a": -1})");
  EXPECT_ERROR("as the id of 'a', found -1", Tokenizer::open(folder.path()));
  test::write_file(folder / "vocab.json", "[]");
  EXPECT_ERROR("vocab.json: expected a JSON object", Tokenizer::open(folder.path()));
}

// In a build without SentencePiece such a file is an Error that says so.
TEST(TokenizerFiles, SentencePieceIsT5) {
  const auto folder = test::token_golden() / "spiece";
  std::shared_ptr<const Tokenizer> tokenizer;
  const std::string error = test::error_of([&] { tokenizer = Tokenizer::open(folder); });
  if (!tokenizer) {
    EXPECT_NE(error.find("this build has no SentencePiece"), std::string::npos) << error;
    GTEST_SKIP() << error;
  }
  EXPECT_EQ(tokenizer->describe(), "SentencePiece, 420 pieces, spiece.model");
  EXPECT_EQ(tokenizer->vocabulary_size(), 520u);
  const auto texts = test::nasty_texts();
  const json expected = test::golden_json(folder / "ids.json");
  size_t compared = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    bool has_special = false;
    for (const char* word : {"<pad>", "</s>", "<unk>", "<extra_id_"})
      has_special |= texts[i].find(word) != std::string::npos;
    if (has_special) continue;
    EXPECT_EQ(test::short_form(tokenizer->encode(texts[i]).ids), expected[i]) << i;
    ++compared;
  }
  EXPECT_GT(compared, 300u);
  test::TemporaryFolder broken;
  const std::string half = test::read_file(folder / "spiece.model").substr(0, 5000);
  EXPECT_ERROR("spiece.model: expected a model of SentencePiece",
               Tokenizer::open(broken.write("spiece.model", half)));
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(tokenizer->encode("<extra_id_0></s><extra_id_99>").ids, (Ids{519, 1, 420, 1}));
}

TEST(TokenizerFiles, SentencePieceIsXlmRoberta) {
  test::TemporaryFolder folder;
  folder.write("sentencepiece.bpe.model",
               test::read_file(test::token_golden() / "spiece" / "spiece.model"));
  std::shared_ptr<const Tokenizer> shifted;
  const std::string error = test::error_of([&] { shifted = Tokenizer::open(folder.path()); });
  if (!shifted) GTEST_SKIP() << error;
  std::vector<int32_t> expected{0};
  const auto plain =
      Tokenizer::open(test::token_golden() / "spiece")->encode("the features 中").ids;
  for (const int32_t id : plain)  // 2 is the unknown there, and 1 the end of the text
    if (id != 1) expected.push_back(id == 2 ? 3 : id + 1);
  expected.push_back(2);
  EXPECT_EQ(shifted->encode("the features 中").ids, expected);
  EXPECT_EQ(shifted->mask_id(), 421);
  EXPECT_EQ(shifted->encode(" <mask>").ids, (std::vector<int32_t>{0, 421, 2}));
}

}  // namespace
}  // namespace fungi
