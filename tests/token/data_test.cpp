// SPDX-License-Identifier: Apache-2.0
// The published tokenizers, on every line of five data sets and on the vectors of the
// specification. Skipped where these are not.
#include "tests/support/data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fungi/token/tokenizer.h"
#include "tests/support/folder.h"
#include "tests/token/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using nlohmann::json;

fs::path tokenizers() { return test::data_folder() / "tokenizers"; }

std::vector<std::string> texts_of(const fs::path& file) {
  std::vector<std::string> texts;
  std::ifstream lines(file, std::ios::binary);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    texts.push_back(tab == std::string::npos ? line : line.substr(tab + 1));
  }
  return texts;
}

// The sums are those of tests/golden/make_token.py.
void expect_sums(const Tokenizer& tokenizer, const std::string& name) {
  const auto sums = test::golden_json(test::token_golden() / "sums.json").at(name);
  for (const auto& [file, expected] : sums.items()) {
    const fs::path path = test::data_folder() / "text" / file;
    if (!fs::exists(path)) GTEST_SKIP() << test::missing_data(path);
    const auto texts = texts_of(path);
    EXPECT_EQ(texts.size(), expected[0].get<size_t>()) << file;
    test::IdSum sum;
    for (const std::string& text : texts) sum.add(tokenizer.encode(text).ids);
    EXPECT_EQ(fmt::format("{:016x}", sum.value()), expected[1].get<std::string>()) << file;
  }
}

class PublishedTokenizer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, PublishedTokenizer,
                         testing::Values("bert-base-uncased/tokenizer.json",
                                         "bert-base-uncased/vocab.txt", "t5/tokenizer.json",
                                         "roberta/tokenizer.json", "roberta/vocab.json",
                                         "gpt2/vocab.json"),
                         [](const auto& each) {
                           std::string name = each.param;
                           for (char& c : name)
                             if (!std::isalnum(uint8_t(c))) c = '_';
                           return name;
                         });

TEST_P(PublishedTokenizer, GivesTheIdsOfTheReferenceOnWholeDataSets) {
  const fs::path path = tokenizers() / GetParam();
  if (!fs::exists(path)) GTEST_SKIP() << test::missing_data(path);
  expect_sums(*Tokenizer::open(path), fs::path(GetParam()).parent_path().string());
}

// A blank at the end, which U+FFFD becomes, too, is a token to this tokenizer.json; the vectors are
// of one that drops it.
bool ends_blank(const std::string& text) {
  return text.ends_with(" ") || text.ends_with("\u00A0") || text.ends_with("\uFFFD");
}

void expect_vectors(const fs::path& tokenizer, const char* vectors, const char* ids,
                    bool with_blanks = true) {
  const fs::path file = test::data_folder() / ".." / "golden" / vectors;
  for (const fs::path& needed : {tokenizer, file})
    if (!fs::exists(needed)) GTEST_SKIP() << test::missing_data(needed);
  const auto opened = Tokenizer::open(tokenizer);
  size_t compared = 0;
  const auto all = test::golden_json(file);
  for (const auto& each : all.at("cases")) {
    const auto text = each.at("text").get<std::string>();
    if (!with_blanks && ends_blank(text)) continue;
    EXPECT_EQ(opened->encode(text).ids, each.at(ids).get<Ids>()) << each.at("text").dump();
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

TEST(PublishedTokenizers, ReproduceTheVectorsOfBert) {
  expect_vectors(tokenizers() / "bert-base-uncased" / "vocab.txt", "bert_tokenizer.json", "ids");
}
TEST(PublishedTokenizers, ReproduceTheVectorsOfT5) {
  expect_vectors(tokenizers() / "t5" / "tokenizer.json", "t5_tokenizer.json", "ids", false);
}
TEST(PublishedTokenizers, ReproduceTheVectorsOfSentencePiece) {
  expect_vectors(tokenizers() / "t5" / "spiece_rebuilt.model", "t5_tokenizer.json",
                 "ids_sentencepiece");
}

// OpenAI's file of merges as a folder of the older kind, by the rules of their code: the pieces are
// the bytes, the bytes at the end of words, what the merges make, and two more.
void write_clip(const test::TemporaryFolder& folder, const std::string& merges) {
  std::vector<std::string> pieces;
  std::string kept = "#version: 0.2\n";
  std::istringstream lines(merges);
  std::string line;
  std::getline(lines, line);  // a title
  for (int i = 0; i < 48894 && std::getline(lines, line); ++i) {
    kept += line + "\n";
    pieces.push_back(line.erase(line.find(' '), 1));
  }
  const json alphabet = test::golden_json(test::token_golden() / "roberta" / "tokenizer.json");
  std::vector<std::string> seen, hidden;  // as characters: themselves first, then those from 256 on
  for (const auto& [piece, id] : alphabet["model"]["vocab"].items()) {
    const bool one = std::count_if(piece.begin(), piece.end(),
                                   [](char c) { return (uint8_t(c) & 0xC0) != 0x80; }) == 1;
    if (one) (piece < "\u0100" ? seen : hidden).push_back(piece);
  }
  std::sort(seen.begin(), seen.end()), std::sort(hidden.begin(), hidden.end());
  json vocabulary;
  for (const char* end : {"", "</w>"})
    for (const auto* each : {&seen, &hidden})
      for (const std::string& c : *each) vocabulary[c + end] = vocabulary.size();
  for (const std::string& piece : pieces) vocabulary[piece] = vocabulary.size();
  for (const char* piece : {"<|startoftext|>", "<|endoftext|>"})
    vocabulary[piece] = vocabulary.size();
  folder.write("vocab.json", vocabulary.dump());
  folder.write("merges.txt", kept);
}

TEST(PublishedTokenizers, ClipGivesTheIdsOfTheReferenceOnWholeDataSets) {
  const fs::path path = tokenizers() / "clip" / "bpe_simple_vocab_16e6.txt.gz";
  if (!fs::exists(path)) GTEST_SKIP() << test::missing_data(path);
  test::TemporaryFolder folder;
  const std::string unzip =
      fmt::format("gzip -dc '{}' > '{}'", path.string(), (folder / "merges").string());
  ASSERT_EQ(std::system(unzip.c_str()), 0) << unzip;
  write_clip(folder, test::read_file(folder / "merges"));
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer->encode("a photo of a cat").ids,
            (Ids{49406, 320, 1125, 539, 320, 2368, 49407}));
  expect_sums(*tokenizer, "clip");
}

// "Hello world" of the published GPT-2, as its paper's code has it.
TEST(PublishedTokenizers, Gpt2PutsNothingAroundTexts) {
  const fs::path path = tokenizers() / "gpt2";
  if (!fs::exists(path)) GTEST_SKIP() << test::missing_data(path);
  const auto tokenizer = Tokenizer::open(path);
  EXPECT_EQ(tokenizer->encode("Hello world").ids, (Ids{15496, 995}));
  EXPECT_EQ(tokenizer->encode("<|endoftext|> Hello").ids, (Ids{50256, 18435}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 50257u);
}

}  // namespace
}  // namespace fungi
