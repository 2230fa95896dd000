// SPDX-License-Identifier: Apache-2.0
// What guesses the word at a token: the head that a network of texts was trained with. Backbones
// have one where their checkpoint does (Backbone::word_head()), objectives ask it; neither knows
// the other. Const, shared by threads.
#pragma once

#include <cstddef>

#include "fungi/base/matrix.h"

namespace fungi {

class WordHead {
 public:
  virtual ~WordHead() = default;
  virtual size_t token_width() const = 0;
  virtual size_t words() const = 0;
  // How likely each word is, before the softmax: tokens [n, token_width] to logits [n, words].
  virtual void forward(View<const float> tokens, View<float> logits) const = 0;
  // The gradient at the logits of these tokens to that at the tokens.
  virtual void backward(View<const float> tokens, View<const float> d_logits,
                        View<float> d_tokens) const = 0;
};

}  // namespace fungi
