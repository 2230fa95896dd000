// SPDX-License-Identifier: Apache-2.0
// Oracle: complex step of the loss that mlm.h describes, through a head that is linear.
// tests/feature/mlm_gradient_test.cpp has the real heads.
#include "fungi/objective/mlm.h"

#include "fungi/objective/factory.h"
#include "reference.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

using namespace reference;

class LinearHead final : public WordHead {
 public:
  LinearHead(size_t words, size_t width) : weight_(random_rows(words, width, 5)) {}
  size_t token_width() const override { return weight_[0].size(); }
  size_t words() const override { return weight_.size(); }
  void forward(View<const float> tokens, View<float> logits) const override {
    most = std::max(most, tokens.rows);
    for (size_t i = 0; i < tokens.rows; ++i)
      for (size_t w = 0; w < words(); ++w) {
        double sum = 0;
        for (size_t j = 0; j < tokens.cols; ++j) sum += weight_[w][j] * tokens(i, j);
        logits(i, w) = float(sum);
      }
  }
  void backward(View<const float>, View<const float> d_logits,
                View<float> d_tokens) const override {
    for (size_t i = 0; i < d_tokens.rows; ++i)
      for (size_t j = 0; j < d_tokens.cols; ++j) {
        double sum = 0;
        for (size_t w = 0; w < words(); ++w) sum += weight_[w][j] * d_logits(i, w);
        d_tokens(i, j) = float(sum);
      }
  }
  template <class S>
  std::vector<S> logits(const std::vector<S>& token) const {
    return affine(weight_, {}, token);
  }
  mutable size_t most = 0;  // tokens of one call

 private:
  Rows<double> weight_;
};

// Tokens of two views of other lengths; so many of them are hidden.
void expect_complex_step(size_t tokens, const std::vector<size_t>& hidden) {
  constexpr size_t width = 6, words = 11;
  const auto head = std::make_shared<LinearHead>(words, width);
  const Mlm objective({}, head);
  const Rows<double> x = random_rows(tokens, width, 2);
  std::vector<int32_t> guess(tokens, -1);
  for (const size_t i : hidden) guess[i] = int32_t((3 * i + 1) % words);
  const auto loss_of = [&](const auto& rows) {
    std::decay_t<decltype(rows[0][0])> loss = 0;
    for (const size_t i : hidden) {
      const auto logits = head->logits(rows[i]);
      loss += (log_sum_exp(logits) - logits[size_t(guess[i])]) / double(hidden.size());
    }
    return loss;
  };
  const Matrix<float> pooled(2, 4), t = matrix_of<float>(x);
  Matrix<float> d_pooled(2, 4), d_tokens(tokens, width);
  const std::vector<size_t> offsets{0, tokens / 3, tokens};
  const std::vector<uint8_t> masked(tokens, 0);
  const double loss =
      objective.loss_and_gradient({pooled, t, masked, offsets, guess}, {d_pooled, d_tokens});
  EXPECT_NEAR(loss, loss_of(x), 1e-5 * loss);
  expect_rows_near<float>(
      d_tokens, gradient(x, [&](const Rows<Complex>& rows) { return loss_of(rows); }), 1e-5);
  for (const float g : std::span(d_pooled.data(), 8)) EXPECT_EQ(g, 0);
  EXPECT_LE(head->most, 32u) << "a long text's guesses are not held all at a time";
}

TEST(Mlm, GradientsMatchTheComplexStep) {
  expect_complex_step(7, {1, 2, 6});
  expect_complex_step(4, {3});
  std::vector<size_t> many;
  for (size_t i = 0; i < 90; i += 2) many.push_back(i);
  expect_complex_step(90, many);
}

TEST(Mlm, ATextWithoutHiddenWordsHasNoGradient) {
  const Mlm objective({}, std::make_shared<LinearHead>(5, 6));
  const Matrix<float> pooled(1, 4), tokens = matrix_of<float>(random_rows(2, 6, 1));
  Matrix<float> d_pooled(1, 4), d_tokens(2, 6);
  const std::vector<int32_t> none{-1, -1};
  const std::vector<size_t> offsets{0, 2};
  const std::vector<uint8_t> masked(2, 0);
  EXPECT_EQ(
      objective.loss_and_gradient({pooled, tokens, masked, offsets, none}, {d_pooled, d_tokens}),
      0);
  for (const float g : std::span(d_tokens.data(), 12)) EXPECT_EQ(g, 0);
}

TEST(Mlm, WordsThatTheHeadDoesNotKnowAreRefused) {
  const Mlm objective({}, std::make_shared<LinearHead>(5, 6)), headless({}, nullptr);
  const Matrix<float> pooled(1, 4), tokens(1, 6);
  Matrix<float> d_pooled(1, 4), d_tokens(1, 6);
  const std::vector<int32_t> words{5};
  const std::vector<size_t> offsets{0, 1};
  const std::vector<uint8_t> masked(1, 0);
  const Latents latents{pooled, tokens, masked, offsets, words};
  EXPECT_ERROR("number 5, the head knows 5",
               objective.loss_and_gradient(latents, {d_pooled, d_tokens}));
  EXPECT_ERROR("head that guesses words is missing",
               headless.loss_and_gradient(latents, {d_pooled, d_tokens}));
}

TEST(Mlm, IsChosenByNameForTextsAlone) {
  ObjectiveContext texts{.embedding_width = 4, .token_width = 6, .kind = SampleKind::text};
  const auto made = make_objective("mlm_b:views=3,hidden=0.4,rule=mask_only", texts);
  EXPECT_EQ(made->name(), "mlm_b");
  EXPECT_EQ(made->views()[0].plan, ViewPlan(HiddenWords{3, 0.4, HiddenWords::Rule::mask_only}));
  EXPECT_TRUE(made->wants_tokens() && made->wants_word_head() && made->ready());
  EXPECT_ERROR("hidden", make_objective("mlm:width=4", texts));
  texts.kind = SampleKind::image;
  EXPECT_ERROR("image", make_objective("mlm", texts));
}

}  // namespace
}  // namespace fungi
