// SPDX-License-Identifier: Apache-2.0
// The real MiniLM from texts to projected gradients, against Hugging Face's BertModel and torch
// autograd (golden/minilm_features.npz beside the folder with the data).
#include <gtest/gtest.h>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/objective/simclr.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/data.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWidth = 384;

class MiniLmGradients : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const fs::path& needed : {model_, golden_})
      if (!fs::exists(needed)) GTEST_SKIP() << test::missing_data(needed);
  }
  Matrix<float> golden(const std::string& name) const {
    return Checkpoint::open(golden_).read(name);
  }
  static std::vector<NamedMatrix> head(const std::string& prefix, uint32_t seed, size_t width) {
    TorchRandom random(seed);
    std::vector<NamedMatrix> state;
    Head::draw(Head::Form::affine, random, width, kWidth).save(prefix, state);
    return state;
  }
  static std::vector<std::string> sentences() {
    return {"How do I locate my card?", "Who was Galileo ?",
            "I don't know what's wrong, e.g. my card-number (1234) isn't working!",
            "Effective but too-tepid biopic", "na\u00efve caf\u00e9 \u2026"};
  }
  const fs::path model_ = test::data_folder() / "weights/all-MiniLM-L6-v2",
                 golden_ = test::data_folder().parent_path() / "golden/minilm_features.npz";
};

TEST_F(MiniLmGradients, EmbeddingsAndProjectedKlGradients) {
  Pool pool(2);
  for (const auto& [pooling, name] : {std::pair("first", "cls"), {"mean_all", "mean"}}) {
    ExtractorOptions options;
    options.objectives = {"kl"};
    options.projection = ProjectionKind::sign_reference;
    options.given = head("kl-head", 42, 768);
    for (NamedMatrix& m : options.given) std::replace(m.name.begin(), m.name.end(), '.', '-');
    Extractor extractor =
        Extractor::open(model_, std::move(options), pool,
                        {.precision = Precision::f32, .stated_facts = {{"pooling", pooling}}});
    std::vector<Text> texts;
    std::vector<std::string> ids;
    for (const std::string& text : sentences()) texts.push_back({text}), ids.push_back(text);
    const auto data = memory_dataset(ids, texts);
    const StoreRows rows = extractor.extract(*data, test::range(5));
    ASSERT_TRUE(rows.failures.empty());
    for (const auto& [block, of] : {std::pair<size_t, std::string>{0, "_e"}, {1, "_kl_yhat"}}) {
      const Matrix<float> expected = golden(name + of);
      ASSERT_EQ(expected.rows(), 5u);
      for (size_t i = 0; i < 5; ++i)
        EXPECT_GT(golden::cosine(rows.blocks[block].row(i), expected.row(i), kWidth), 0.9999)
            << name << of << " " << i;
    }
  }
}

TEST_F(MiniLmGradients, SimclrOfGivenViewsAndNegatives) {
  const std::vector<std::string> views{
      "How do I locate my card?", "Do I locate my card?",  "How I locate my card?",
      "How do locate my card?",   "How do I my card?",     "How do I locate card?",
      "How do I locate my?",      "Do I locate my card?",  "How do I my card?",
      "How do I locate card?",    "How I locate my card?", "How do locate my card?"},
      negatives{"Who was Galileo ?",
                "What county is Modesto , California in ?",
                "Effective but too-tepid biopic",
                "I am still waiting on my card",
                "What is an atom ?",
                "The movie is good"};
  Pool pool(2);
  const test::TemporaryFolder plain;  // without modules.json, which wants means of length 1
  for (const char* file : {"config.json", "model.safetensors"})
    fs::create_symlink(fs::absolute(model_ / file), plain / file);
  const Backbone backbone = Backbone::open(
      plain.path(), {.precision = Precision::f32, .stated_facts = {{"pooling", "first"}}}, pool);
  const auto tokenizer = Tokenizer::open(model_);
  Workspace workspace;
  const auto embed = [&](const std::vector<std::string>& texts) {
    std::vector<Tokens> tokens;
    std::vector<Inputs::Text> inputs;
    for (const std::string& text : texts) tokens.push_back(tokenizer->encode(text));
    for (const Tokens& t : tokens) inputs.push_back({t.ids, {}});
    Matrix<float> out(texts.size(), kWidth);
    backbone.forward(Inputs::text(inputs), workspace, out);
    return out;
  };
  const auto projection =
      Projection::make({.kind = ProjectionKind::sign_reference, .rows = kWidth, .seed = 42},
                       {backbone.layer_outputs(), backbone.layer_inputs(), backbone.layer_bias()});
  for (const auto& [tau_d, name] : {std::pair(1.0, "simclr_taud1.0"), {0.07, "simclr_taud0.07"}}) {
    SimclrParameters parameters;
    parameters.width = 256, parameters.denominator_temperature = tau_d;
    parameters.views = WordDeletions{.global_views = views.size()};
    Simclr objective(parameters, kWidth, 42);
    objective.restore(head("head", 1042, 256));
    const Matrix<float> bank = embed(negatives);
    Matrix<float> kept(bank.rows(), 256);
    objective.reduce_support(bank, kept);
    objective.prepare(kept, 1, pool);
    const Matrix<float> e = embed(views);
    Matrix<float> d_e(e.rows(), kWidth), y(1, kWidth);
    const double loss = objective.loss_and_gradient({e}, {d_e, {}});
    EXPECT_NEAR(loss, golden(std::string(name) + "_loss")(0, 0), 2e-4 * std::abs(loss)) << name;
    LayerGradient g;
    backbone.backward(d_e, workspace, g);
    const GradientFactors factors{g.b, g.a};
    projection->project({&factors, 1}, y, pool);
    const Matrix<float> expected = golden(std::string(name) + "_yhat");
    EXPECT_GT(golden::cosine(y.row(0), expected.data(), kWidth), 0.9999) << name;
  }
}

}  // namespace
}  // namespace fungi
