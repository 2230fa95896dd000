// SPDX-License-Identifier: Apache-2.0
// Hidden words from ids to the layer's gradient, against transformers' heads and torch autograd
// (tests/golden/make_mlm.py), and the head's way through the extractor.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/objective/mlm.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path model_of(const std::string& name) {
  const fs::path golden(FUNGI_GOLDEN_DIR);
  if (name == "untied") return golden / "objective" / "mlm_untied";
  return golden / "backbone" / (name == "bert" ? "bert_mean" : name);
}

class MlmGradient : public testing::TestWithParam<std::string> {};

TEST_P(MlmGradient, IsThatOfAutograd) {
  const json samples = json::parse(
      std::ifstream(fs::path(FUNGI_GOLDEN_DIR) / "objective" / ("mlm_" + GetParam() + ".json")));
  ASSERT_EQ(samples.size(), 2u);
  Pool pool(1);
  for (const char* layer : {"blocks.0.mlp.fc1", "blocks.1.attn.proj"}) {
    BackboneOptions options{
        .precision = Precision::f32, .layer = layer, .tokens = true, .word_head = true};
    options.stated_facts["heads"] = "2";
    const Backbone backbone = Backbone::open(model_of(GetParam()), options, pool);
    const size_t width = backbone.architecture().width;
    const Mlm objective({}, backbone.word_head());
    for (const json& sample : samples) {
      const auto ids = sample["ids"].get<std::vector<int32_t>>(),
                 words = sample["hidden_words"].get<std::vector<int32_t>>();
      const Inputs::Text text{ids, {}};
      Workspace workspace;
      Matrix<float> pooled(1, width), tokens(ids.size(), width), d_pooled(1, width),
          d_tokens(ids.size(), width);
      backbone.forward(Inputs::text({&text, 1}), workspace, pooled, tokens);
      const std::vector<size_t> offsets{0, ids.size()};
      const std::vector<uint8_t> masked(ids.size(), 0);
      const double loss = objective.loss_and_gradient({pooled, tokens, masked, offsets, words},
                                                      {d_pooled, d_tokens});
      EXPECT_NEAR(loss, sample["loss"].get<double>(), 1e-5 * loss);
      LayerGradient g;
      backbone.backward(d_pooled, workspace, g, d_tokens);
      const auto expected = sample["gradients"][layer].get<std::vector<double>>();
      const size_t rows = g.b.cols(), cols = g.a.cols() + 1;
      ASSERT_EQ(expected.size(), rows * cols);
      std::vector<double> found(rows * cols);
      for (size_t r = 0; r < g.b.rows(); ++r)
        for (size_t y = 0; y < rows; ++y)
          for (size_t x = 0; x < cols; ++x)
            found[y * cols + x] += double(g.b(r, y)) * (x < g.a.cols() ? g.a(r, x) : 1.0f);
      EXPECT_LT(golden::relative_error(found.data(), expected.data(), found.size()), 1e-4) << layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, MlmGradient, testing::Values("bert", "roberta", "untied"),
                         [](const auto& p) { return p.param; });

// The golden BERT with its head, and a tokeniser of its size.
class MlmFeatures : public ::testing::Test {
 protected:
  MlmFeatures() { take("bert_mean"); }
  void take(const std::string& model) {
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / model / file, folder / file,
                    fs::copy_options::overwrite_existing);
    write_words("[MASK]");
  }
  void write_words(const std::string& mask) {
    std::ofstream out(folder / "vocab.txt");
    for (const std::string& piece :
         {std::string("[PAD]"), std::string("[UNK]"), std::string("[CLS]"), std::string("[SEP]"),
          mask, std::string("where"), std::string("is"), std::string("my"), std::string("new"),
          std::string("card")})
      out << piece << '\n';
  }
  Extractor open(std::vector<std::string> objectives, Pool& pool) const {
    ExtractorOptions o;
    o.objectives = std::move(objectives);
    return Extractor::open(folder.path(), std::move(o), pool, {.precision = Precision::f32});
  }
  static std::unique_ptr<Dataset> texts() {
    return memory_dataset({"a", "b", "c"},
                          std::vector<Text>{{"where is my new card"}, {"card"}, {""}});
  }
  test::TemporaryFolder folder;
};

TEST_F(MlmFeatures, ATextIsAloneAndStandsBesideOtherObjectives) {
  Pool one(1), two(2);
  Extractor both = open({"kl:width=16", "mlm"}, two), alone = open({"mlm"}, one);
  const auto data = texts();
  const StoreRows all = both.extract(*data, test::range(3));
  ASSERT_TRUE(all.failures.empty());
  ASSERT_EQ(all.blocks.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const size_t sample[] = {i};
    const StoreRows single = alone.extract(*data, sample);
    ASSERT_EQ(single.blocks.size(), 2u);
    EXPECT_TRUE(std::equal(single.blocks[1].row(0),
                           single.blocks[1].row(0) + single.blocks[1].cols(), all.blocks[2].row(i)))
        << "text " << i;
  }
  const auto length = [&](size_t i) {
    double square = 0;
    for (size_t c = 0; c < all.blocks[2].cols(); ++c)
      square += double(all.blocks[2](i, c)) * all.blocks[2](i, c);
    return square;
  };
  EXPECT_NEAR(length(0), 1, 1e-5);
  EXPECT_NEAR(length(1), 1, 1e-5);
  EXPECT_EQ(length(2), 0) << "no words, nothing to guess";
  const auto notes = both.notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("mlm: the gradient of 1 samples is zero");
  }));
}

TEST_F(MlmFeatures, ParametersDecideAboutTheRows) {
  Pool pool(1);
  const auto data = texts();
  const auto row = [&](const std::string& objective) {
    return std::move(open({objective}, pool).extract(*data, test::range(1)).blocks[1]);
  };
  EXPECT_TRUE(test::same(row("mlm"), row("mlm:hidden=0.15")));
  EXPECT_FALSE(test::same(row("mlm"), row("mlm:hidden=0.5")));
  EXPECT_FALSE(test::same(row("mlm"), row("mlm:views=1")));
}

TEST_F(MlmFeatures, AModelWithoutTheHeadIsRefusedByName) {
  Pool pool(1);
  EXPECT_EQ(open({"kl"}, pool).backbone().word_head(), nullptr);
  write_words("[HIDE]");
  EXPECT_ERROR("no mask token", open({"mlm"}, pool));
  take("bert");  // the encoder alone
  EXPECT_ERROR("head that guesses hidden words is not in this file", open({"kl", "mlm"}, pool));
  EXPECT_EQ(open({"kl"}, pool).blocks().size(), 2u);
  ExtractorOptions own;
  own.objectives = {"mlm"};
  take("bert_mean");
  const Backbone plain =
      Backbone::open(folder.path(), {.precision = Precision::f32, .tokens = true}, pool);
  EXPECT_ERROR("opened without its head", Extractor(plain, std::move(own), pool));
}

}  // namespace
}  // namespace fungi
