// SPDX-License-Identifier: Apache-2.0
// What every tokenizer answers, and which files of a folder make one.
#include "fungi/token/tokenizer.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using Ids = std::vector<int32_t>;

const std::string kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ns\n##s\n##at\n!\nThe\n\xE4\xB8\xAD\n";

TEST(Tokenizer, ReadsAVocabularyOfBert) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer->describe(), "WordPiece, 13 pieces, vocab.txt");
  EXPECT_EQ(tokenizer->vocabulary_size(), 13u);
  EXPECT_EQ(tokenizer->mask_id(), 4);
  EXPECT_TRUE(tokenizer->is_special(0) && tokenizer->is_special(4));
  EXPECT_FALSE(tokenizer->is_special(5));
  EXPECT_FALSE(tokenizer->model_max_length());
  EXPECT_EQ(tokenizer->encode("The cats sat!").ids, (Ids{2, 5, 6, 8, 7, 9, 10, 3}));
  EXPECT_EQ(tokenizer->encode("th\u00E9 dog [MASK]\u4E2Dcat").ids, (Ids{2, 5, 1, 4, 12, 6, 3}));
  EXPECT_EQ(tokenizer->encode("").ids, (Ids{2, 3}));
}

TEST(Tokenizer, ConfigurationKeepsCapitals) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const std::string before = Tokenizer::open(folder.path())->fingerprint();
  folder.write("tokenizer_config.json", R"({"do_lower_case": false, "model_max_length": 512,
                                            "mask_token": {"content": "!"}})");
  const auto tokenizer = Tokenizer::open(folder / "vocab.txt");
  EXPECT_EQ(tokenizer->encode("The cats").ids, (Ids{2, 11, 6, 8, 3}));
  EXPECT_EQ(tokenizer->model_max_length(), 512u);
  EXPECT_EQ(tokenizer->mask_id(), 10);
  EXPECT_NE(tokenizer->fingerprint(), before);
  folder.write("tokenizer_config.json", R"({"model_max_length": 1e30})");
  EXPECT_FALSE(Tokenizer::open(folder.path())->model_max_length());
}

TEST(Tokenizer, CutsBehindWhatFits) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = Tokenizer::open(folder.path());
  const Tokens whole = tokenizer->encode("the cat", 4);
  EXPECT_EQ(whole.ids, (Ids{2, 5, 6, 3}));
  EXPECT_FALSE(whole.cut);
  const Tokens cut = tokenizer->encode("the cat", 3);
  EXPECT_EQ(cut.ids, (Ids{2, 5, 3}));
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(tokenizer->encode("the cat", 2).ids, (Ids{2, 3}));
  EXPECT_ERROR("room for at least 2 tokens", tokenizer->encode("the cat", 1));
}

TEST(Tokenizer, NamesTheByteThatIsNoUtf8) {
  test::TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_ERROR("the byte 0xFF at 4", tokenizer->encode("the \xFF"));
  EXPECT_ERROR("the byte 0xC3 at 10", tokenizer->encode("the cat the \xC3" + 2));
  EXPECT_ERROR("the byte 0xED at 0", tokenizer->encode("\xED\xA0\x80"));  // half of a pair
  EXPECT_ERROR("the byte 0xC0 at 1", tokenizer->encode("a\xC0\x80"));     // not the shortest
  EXPECT_ERROR("the byte 0xF4 at 0", tokenizer->encode("\xF4\x90\x80\x80"));
}

TEST(Tokenizer, RefusesWhatIsNone) {
  test::TemporaryFolder folder;
  EXPECT_ERROR("found none of tokenizer.json, vocab.txt", Tokenizer::open(folder.path()));
  EXPECT_ERROR("model from its hub", Tokenizer::open(folder.path()));
  EXPECT_ERROR("cannot be opened", Tokenizer::open(folder / "absent.json"));
  EXPECT_ERROR("give the folder of the model", Tokenizer::open(folder.write("model.bin", "x")));
  folder.write("vocab.json", "{}");  // without merges.txt
  EXPECT_ERROR("found none of tokenizer.json, vocab.txt", Tokenizer::open(folder.path()));
  folder.write("vocab.txt", "a\nb\n");
  EXPECT_ERROR("the vocabulary has no '[UNK]'", Tokenizer::open(folder.path()));
  folder.write("vocab.txt", "a\n[UNK]\n");
  EXPECT_ERROR("expected '[CLS]' in the vocabulary", Tokenizer::open(folder.path()));
  folder.write("vocab.txt", "a\n[UNK\xFF]\n");
  EXPECT_ERROR("the byte 0xFF at 6", Tokenizer::open(folder.path()));
}

}  // namespace
}  // namespace fungi
