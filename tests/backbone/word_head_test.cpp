// SPDX-License-Identifier: Apache-2.0
// The heads that guess words, of every family, against transformers' own
// (tests/golden/make_mlm.py): logits, and gradients at the tokens.
#include "fungi/backbone/word_head.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kWidth = 12, kWords = 21, kTokens = 3;

fs::path file_of(const std::string& family, const char* ending) {
  return fs::path(FUNGI_GOLDEN_DIR) / "objective" / ("mlm_head_" + family + ending);
}

// As the readers of names would leave it; activation and epsilon are those of the config.json.
Reading reading_of(const std::string& family, const std::string& prefix) {
  Reading reading;
  Architecture& a = reading.architecture;
  a.width = kWidth, a.vocabulary = kWords;
  a.activation = family == "albert"       ? kernel::Activation::gelu_tanh
                 : family == "modernbert" ? kernel::Activation::gelu
                                          : kernel::Activation::relu;
  a.norm_epsilon = family == "bert" || family == "modernbert" ? 1e-3f
                   : family == "roberta"                      ? 1e-5f
                                                              : 1e-12f;
  reading.prefix = prefix;
  return reading;
}

class WordHeads : public testing::TestWithParam<std::string> {};

TEST_P(WordHeads, LogitsAndGradientsAreTransformers) {
  const json truth = json::parse(std::ifstream(file_of(GetParam(), ".json")));
  const Checkpoint checkpoint = Checkpoint::open(file_of(GetParam(), ".safetensors"));
  const auto numbers = [&](const char* name) { return truth[name].get<std::vector<double>>(); };
  const auto matrix = [&](const char* name, size_t cols) {
    const std::vector<double> values = numbers(name);
    Matrix<float> m(kTokens, cols);
    std::copy(values.begin(), values.end(), m.data());
    return m;
  };
  for (const Isa isa : supported_isas()) {
    const auto head =
        load_word_head(checkpoint, reading_of(GetParam(), truth["prefix"].get<std::string>()),
                       kernel::kernel_for(isa, Precision::f32));
    ASSERT_EQ(head->words(), kWords);
    ASSERT_EQ(head->token_width(), kWidth);
    Matrix<float> logits(kTokens, kWords), d_tokens(kTokens, kWidth);
    const Matrix<float> tokens = matrix("tokens", kWidth);
    head->forward(tokens, logits);
    EXPECT_LT(golden::relative_error(logits.data(), numbers("logits").data(), kTokens * kWords),
              2e-5);
    head->backward(tokens, matrix("d_logits", kWords), d_tokens);
    EXPECT_LT(golden::relative_error(d_tokens.data(), numbers("d_tokens").data(), kTokens * kWidth),
              1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(, WordHeads,
                         testing::Values("bert", "roberta", "mpnet", "distilbert", "albert",
                                         "electra", "modernbert"),
                         [](const auto& p) { return p.param; });

TEST(WordHead, IsFoundBesideItsNetworkInAFolderOfBoth) {
  const Checkpoint checkpoint = Checkpoint::open(file_of("bert", ".safetensors"));
  const auto& kernel = kernel::f32_kernel();
  EXPECT_NE(load_word_head(checkpoint, reading_of("bert", "bert."), kernel), nullptr);
  EXPECT_ERROR("has no table of them", load_word_head(checkpoint, reading_of("bert", ""), kernel));
}

TEST(WordHead, WhatDoesNotFitIsRefused) {
  const auto& kernel = kernel::f32_kernel();
  const Checkpoint checkpoint = Checkpoint::open(file_of("bert", ".safetensors"));
  Reading wide = reading_of("bert", "bert."), many = reading_of("bert", "bert.");
  wide.architecture.width = 13, many.architecture.vocabulary = 22;
  EXPECT_ERROR("cls.predictions.transform.dense.weight", load_word_head(checkpoint, wide, kernel));
  EXPECT_ERROR("word_embeddings", load_word_head(checkpoint, many, kernel));
  test::TinyCheckpoint classifier = test::shaped_like(file_of("modernbert", ".safetensors"));
  ASSERT_EQ(classifier.shapes.erase("decoder.bias"), 1u);  // what is left begins a classifier, too
  const test::TemporaryFolder folder;
  const Checkpoint headless = Checkpoint::open(classifier.write(folder));
  EXPECT_ERROR("is not in this file",
               load_word_head(headless, reading_of("modernbert", "model."), kernel));
  const Checkpoint t5 = Checkpoint::open(fs::path(FUNGI_GOLDEN_DIR) / "backbone/t5");
  EXPECT_ERROR("T5 has none", load_word_head(t5, reading_of("t5", ""), kernel));
}

}  // namespace
}  // namespace fungi
