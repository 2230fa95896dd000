// SPDX-License-Identifier: Apache-2.0
// Ids of nasty texts by small tokenizers of every kind, against Hugging Face's `tokenizers`.
#include "tests/token/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fungi/token/tokenizer.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> golden_tokenizers() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::token_golden()))
    if (fs::exists(entry.path() / "tokenizer.json")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, GoldenTokenizer, testing::ValuesIn(golden_tokenizers()),
                         [](const auto& each) { return each.param; });

TEST_P(GoldenTokenizer, GivesTheIdsOfTheReference) {
  const fs::path folder = test::token_golden() / GetParam();
  const auto tokenizer = Tokenizer::open(folder);
  const auto texts = test::nasty_texts();
  const auto expected = test::golden_json(folder / "ids.json");
  ASSERT_GE(texts.size(), 300u);
  ASSERT_EQ(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(test::short_form(tokenizer->encode(texts[i]).ids), expected[i])
        << i << ": " << nlohmann::json(texts[i].substr(0, 200)).dump(-1, ' ', true);
}

}  // namespace
}  // namespace fungi
