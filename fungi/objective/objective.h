// SPDX-License-Identifier: Apache-2.0
// A self-supervised loss on plain matrices: it says which views of a sample it wants to see, and
// turns their embeddings into a loss value and the gradient of that loss with respect to the
// embeddings (SPEC 2). It knows no backbone.
//
// An objective of your own is one small class: name(), views() and loss_and_gradient(); the rest
// has defaults. Once prepared, an objective is const and safe to share between threads; samples
// never meet inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/base/view_plan.h"

namespace fungi {

struct ViewRequest {
  ViewPlan plan;
  // Names the random draws. Equal names give a sample the same crops (as far as both plans go),
  // other names other ones.
  std::string draw;
  bool gradient = true;  // false: only the embeddings are wanted, no backward pass
  // The first `masked_views` views are shown with this share of their patch tokens hidden
  // (token_mask() in ibot.h).
  size_t masked_views = 0;
  double mask_ratio = 0;
};

// What the backbone saw of ONE sample: the views of all requests, in the order of views().
struct Latents {
  View<const float> pooled;  // [v, d] embeddings
  // Patches or words after the final norm, and flags, 1 where one was hidden: those of view i are
  // rows token_offsets[i] .. token_offsets[i + 1]. All empty unless wants_tokens().
  View<const float> tokens = {};
  std::span<const uint8_t> masked = {};
  std::span<const size_t> token_offsets = {};
  // Of each token the word that is hidden there, -1 where none is (HiddenWords); empty as tokens.
  std::span<const int32_t> hidden_words = {};
};

// Same shapes as Latents; zeroed by the caller. Rows of requests without a gradient stay zero.
struct LatentGradients {
  View<float> pooled;
  View<float> tokens;
};

// Which training samples an objective must see before it can start.
struct Support {
  static constexpr size_t kAll = SIZE_MAX;
  size_t samples = 0;  // 0: none; kAll: the whole training set
  ViewRequest views;
};

struct Parameter {
  std::string name;
  std::variant<double, std::string> value;
};

struct NamedMatrix {
  std::string name;
  Matrix<float> values;
};

class Objective {
 public:
  virtual ~Objective() = default;

  virtual std::string name() const = 0;                // also the name of the feature block
  virtual std::vector<ViewRequest> views() const = 0;  // at least one
  virtual bool wants_tokens() const { return false; }
  // Whether it was to be made with the model's own head that guesses words.
  virtual bool wants_word_head() const { return false; }

  // Loss of one sample; writes gradient_scale() times its gradient. Thread-safe, deterministic.
  virtual double loss_and_gradient(const Latents& latents, LatentGradients gradients) const = 0;

  // A positive constant of the run by which the written gradient exceeds the true one. It vanishes
  // when the feature is normalised, and keeps tiny gradients away from the bottom of the float
  // range (SPEC 1.9).
  virtual double gradient_scale() const { return 1; }

  // Preparation. Of each support view `support_width` numbers are kept (by default the embedding
  // itself), computed row by row by reduce_support(), so that the embeddings can be streamed;
  // prepare() then gets all of them, [samples · views_per_sample, support_width], in the order of
  // the samples.
  virtual Support support() const { return {}; }
  virtual size_t support_width(size_t embedding_width) const { return embedding_width; }
  virtual void reduce_support(View<const float> embeddings, View<float> kept) const;
  virtual void prepare(View<const float> kept, size_t views_per_sample, Pool& pool);
  // False: prepare() or restore() must come first. One with support() says here when it has it.
  virtual bool ready() const { return support().samples == 0; }

  // All that was drawn or learnt (heads, negatives, prototypes): stored with a run, and given back
  // by restore() so that another run computes the same. restore() also takes a part, e.g. heads of
  // the user's own; unknown names and wrong shapes are Errors. New heads make the objective
  // unprepared unless what depends on them comes along.
  virtual std::vector<NamedMatrix> state() const { return {}; }
  virtual void restore(const std::vector<NamedMatrix>& state);

  virtual std::vector<Parameter> parameters() const { return {}; }

  // What the user should know about the preparation, one line each; read off the state, so that it
  // is the same after restore(). `support_views`: of each support sample.
  virtual std::vector<std::string> notes([[maybe_unused]] size_t support_views) const { return {}; }
};

// Which of `available` training samples form the support, in order: the head of a seeded
// permutation, at most `wanted`.
std::vector<uint32_t> choose_support(size_t available, size_t wanted, uint64_t seed);

}  // namespace fungi
