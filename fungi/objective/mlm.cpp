// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/mlm.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/objective/head.h"

namespace fungi {
namespace {

// Hidden tokens whose guesses are held at a time, and for which a table of all words is walked
// through once.
constexpr size_t kTogether = 32;

}  // namespace

void MlmParameters::visit(ParameterVisitor& visitor) { visitor.views(views); }

Mlm::Mlm(const MlmParameters& parameters, std::shared_ptr<const WordHead> head, std::string name)
    : name_(std::move(name)), parameters_(parameters), head_(std::move(head)) {}

std::vector<ViewRequest> Mlm::views() const { return {{.plan = parameters_.views, .draw = "mlm"}}; }

double Mlm::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  if (!head_)
    fail("the head that guesses words is missing", name_,
         "make it with the head of a backbone that was opened with BackboneOptions::word_head");
  FUNGI_ASSERT(latents.hidden_words.size() == latents.tokens.rows &&
               latents.tokens.cols == head_->token_width());
  std::vector<size_t> hidden;
  for (size_t row = 0; row < latents.tokens.rows; ++row)
    if (latents.hidden_words[row] >= 0) hidden.push_back(row);
  if (hidden.empty()) return 0;  // a text without words

  double loss = 0;
  for (size_t first = 0; first < hidden.size(); first += kTogether) {
    const size_t count = std::min(kTogether, hidden.size() - first);
    loss += guess(latents, std::span(hidden).subspan(first, count), gradients.tokens);
  }
  const float share = 1 / float(hidden.size());
  for (const size_t row : hidden)
    for (size_t j = 0; j < gradients.tokens.cols; ++j) gradients.tokens(row, j) *= share;
  return loss / double(hidden.size());
}

// The sum of the losses at some rows, and their gradients there.
double Mlm::guess(const Latents& latents, std::span<const size_t> rows,
                  View<float> d_tokens) const {
  const size_t words = head_->words(), width = latents.tokens.cols;
  Matrix<float> tokens(rows.size(), width), logits(rows.size(), words);
  std::vector<float> lse(rows.size()), right(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(latents.tokens.row(rows[i]), width, tokens.row(i));
  head_->forward(tokens, logits);
  const auto word = [&](size_t i) { return size_t(latents.hidden_words[rows[i]]); };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (word(i) >= words)
      fail(fmt::format("the hidden word has the number {}, the head knows {}", word(i), words),
           name_, "put the model's own tokeniser beside its weights");
    right[i] = logits(i, word(i));
  }
  objective_kernel().softmax(rows.size(), words, logits.data(), logits.stride(), lse.data());
  double loss = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    loss += double(lse[i]) - right[i];
    logits(i, word(i)) -= 1;
  }
  Matrix<float> gradient(rows.size(), width);
  head_->backward(tokens, logits, gradient);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(gradient.row(i), width, d_tokens.row(rows[i]));
  return loss;
}

}  // namespace fungi
