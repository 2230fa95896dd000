// SPDX-License-Identifier: Apache-2.0
// A frozen encoder, forward and backward: views in, embeddings out, then a gradient at the
// embeddings in and the gradient of one linear layer out, as thin factors. The Backbone is const
// after loading and shared by all threads; everything that changes lives in a Workspace, one per
// thread. Matrices of another shape than is said here are an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/base/cpu.h"
#include "fungi/base/inputs.h"
#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/base/stages.h"
#include "fungi/base/word_head.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

// A linear layer of a block, by its canonical name: blocks.N.attn.qkv, .attn.proj, .mlp.fc1 or
// .mlp.fc2.
struct LayerId {
  enum class Part { qkv, proj, fc1, fc2 };
  size_t block = 0;
  Part part = Part::proj;

  static LayerId parse(std::string_view name,
                       size_t depth);  // "-1" counts from the end: blocks.-1.attn.proj
  std::string name() const;
  auto operator<=>(const LayerId&) const = default;  // in the order of the forward pass
};

// The layers that patterns name, each once, in the order of the forward pass: "blocks.*.mlp.fc2" is
// that of every block, a star stands for anything. Error where a pattern names none.
std::vector<LayerId> parse_layers(const std::vector<std::string>& patterns, size_t depth);

// The weight of a layer is [outputs, inputs]; for stores, which outlive the backbone.
size_t layer_inputs(const Architecture& architecture, const LayerId& layer);
size_t layer_outputs(const Architecture& architecture, const LayerId& layer);
bool layer_bias(const Architecture& architecture, const LayerId& layer);

struct BackboneOptions {
  Isa isa = best_isa();
  std::optional<Precision> precision;  // default: bf16 where its products are faster than f32's
  std::string layer =
      "blocks.-1.attn.proj";  // whose gradient backward() gives; "none" for embeddings alone
  // Of several layers at once, as parse_layers() reads them; `layer` is not looked at then.
  std::vector<std::string> layers = {};
  bool tokens = false;        // give every final token as well (dense features, masked objectives)
  bool word_head = false;     // read the head that guesses words, too: Error where there is none
  // DEVIATION: the paper's code hooks torchvision's fused attention module, so what it takes for
  // the input of blocks.N.attn.proj is the output of norm1 instead of the attention context (SPEC
  // 1.4.1). Takes effect for torchvision checkpoints and that layer only.
  bool mha_input_as_activation = false;
  // DEVIATION: the paper's code ran OpenAI's CLIP through timm with GELU, not with the QuickGELU of
  // its training (SPEC 4). Takes effect when a CLIP tower is opened whose activation is not stated,
  // and is then among the stated facts.
  bool clip_with_gelu = false;
  // DEVIATION: the paper's code took the first token of every text encoder, also of those that were
  // trained with another pooling (SPEC 10.2). Takes effect when one is opened whose pooling is not
  // stated, and is then among the stated facts.
  bool text_by_first_token = false;
  StatedFacts stated_facts;  // facts the file does not hold; "size" sets another input size
};

// Where the tokens of each view lie among the rows that forward() gives: view i has rows offsets[i]
// .. offsets[i + 1]. The first `prefix` of them are of the model's own (class token, registers),
// the others the view's patches or words.
struct TokenLayout {
  std::vector<size_t> offsets;  // count + 1
  size_t prefix = 0;
  size_t rows() const { return offsets.back(); }
  size_t first(size_t view) const { return offsets[view] + prefix; }
  size_t own(size_t view) const { return offsets[view + 1] - first(view); }
};

// The gradient of one linear layer as factors: for sample i, ∂L/∂W = Σ_t b_t ⊗ a_t over rows
// offsets[i] .. offsets[i+1], and ∂L/∂bias = Σ_t b_t when the layer has a bias.
struct LayerGradient {
  Matrix<float> a;              // [rows, inputs of the layer]
  Matrix<float> b;              // [rows, outputs of the layer]
  std::vector<size_t> offsets;  // count + 1
  bool bias = true;
};

class Workspace;
class Recording;
class Checkpoint;
class TensorSource;

// What a checkpoint is and how it would be run; no weight is read. Error naming the choices when it
// cannot be told, or what is missing.
Architecture read_architecture(const Checkpoint& checkpoint, const StatedFacts& stated_facts = {});
// What is to be said of that to the user, once: which of several networks is used, and which facts
// neither the file nor what lies beside it tells.
std::vector<std::string> read_notes(const Checkpoint& checkpoint,
                                    const StatedFacts& stated_facts = {});
// Error unless `key` is one of the facts that can be stated.
void require_stated_key(const std::string& key);

// Copies share the weights, so whoever needs one keeps a copy; the last copy frees them.
class Backbone {
 public:
  // A checkpoint file or folder (see Checkpoint::open). Packing runs on `pool`.
  static Backbone open(const std::filesystem::path& path, const BackboneOptions& options,
                       Pool& pool);
  // The same of a checkpoint that is open; one in memory may go when this returns.
  static Backbone open(const Checkpoint& checkpoint, const BackboneOptions& options, Pool& pool);
  // Weights from anywhere under canonical names (tensors.h), e.g. random ones for benchmarks.
  static Backbone assemble(const Architecture& architecture, const TensorSource& tensors,
                           const BackboneOptions& options, Pool& pool);

  const Architecture& architecture() const;
  // With the precision filled in, and the deviations only where they take effect.
  const BackboneOptions& options() const;
  const kernel::Kernel& kernel() const;
  const kernel::Kernel& products() const;  // of int8 those of most layers, otherwise the same
  std::optional<LayerId> layer() const;        // the first of layers()
  const std::vector<LayerId>& layers() const;  // of which a gradient is given; none: empty
  // Null unless options.word_head, and of assembled weights.
  const std::shared_ptr<const WordHead>& word_head() const;
  const std::vector<std::string>& notes() const;  // see read_notes(); none of assembled weights
  const std::filesystem::path& path() const;  // as given to open(); empty for weights of no file
  // Of the checkpoint, read again by the first call; empty for assembled weights. Error when the
  // file was changed since: its sum would not be that of these weights.
  std::string sha256() const;
  size_t layer_inputs() const;   // K of layer(); Error without a layer, as the next two
  size_t layer_outputs() const;  // H of the layer
  bool layer_bias() const;
  // Views per call that suit the caches; of texts so many at most, and about so many tokens.
  size_t preferred_batch() const;
  size_t preferred_tokens() const { return 1024; }
  // Error where these are no inputs of this backbone, as forward().
  TokenLayout layout(const Inputs& inputs) const;

  // embeddings [count, embedding_width]; tokens [rows of layout(), width] (final-norm, only with
  // options.tokens; else empty). The workspace remembers what backward() needs until the next
  // forward(). Rows never depend on their neighbours.
  void forward(const Inputs& inputs, Workspace& workspace, View<float> embeddings,
               View<float> tokens = {}) const;

  // A loss over many views needs all embeddings before any gradient. Where the layer lies after the
  // last attention and the embedding is that of leading tokens, backward needs only a few numbers
  // per view: record() appends those of the last forward(), and backward() can be run later for
  // views first .. first + d_embeddings.rows of the recording. Otherwise run forward() again before
  // backward().
  bool can_record() const;
  void record(const Workspace& workspace, Recording& recording) const;
  void backward(View<const float> d_embeddings, const Recording& recording, size_t first,
                Workspace& workspace, std::span<LayerGradient> gradients) const;

  // From ∂L/∂embeddings (and ∂L/∂tokens, only with options.tokens) of the views of the last
  // forward() to the layers, in one pass; a gradient for each of layers(). What one layer is given
  // does not depend on the others.
  void backward(View<const float> d_embeddings, Workspace& workspace,
                std::span<LayerGradient> gradients, View<const float> d_tokens = {}) const;
  // The same of a single layer.
  void backward(View<const float> d_embeddings, Workspace& workspace, LayerGradient& gradient,
                View<const float> d_tokens = {}) const {
    backward(d_embeddings, workspace, std::span(&gradient, 1), d_tokens);
  }

 private:
  struct Weights;
  static Backbone open(const Checkpoint& checkpoint, const std::filesystem::path& path,
                       const BackboneOptions& options, Pool& pool);
  explicit Backbone(std::shared_ptr<const Weights> weights) : weights_(std::move(weights)) {}
  friend class Workspace;
  friend class Recording;
  friend struct Run;
  std::shared_ptr<const Weights> weights_;
};

// Everything that changes while a backbone runs. Grows to the largest call and stays; one per
// thread. Another backbone may run in it, but starts from nothing.
class Workspace {
 public:
  Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

  Stages stages;

 private:
  friend class Backbone;
  friend struct Run;
  struct State;
  std::unique_ptr<State> state_;
};

// What backward() needs of up to `capacity` views; see Backbone::record().
class Recording {
 public:
  Recording(const Backbone& backbone, size_t capacity);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

 private:
  friend class Backbone;
  struct State;
  std::unique_ptr<State> state_;
};

// The families a checkpoint may belong to, for `fungi models`.
struct FamilyFacts {
  std::string name, dialects, examples, notes;
};
std::vector<FamilyFacts> families();

}  // namespace fungi
