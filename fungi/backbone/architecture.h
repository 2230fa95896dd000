// SPDX-License-Identifier: Apache-2.0
// One record of facts that says how a transformer is run. The encoder runs any such record; the
// files that end in _names.cpp fill it in from the tensors of a checkpoint. A new model is a new
// record, not new code.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fungi/base/preprocess.h"
#include "fungi/base/sound_front_end.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

enum class InputKind { image, filter_bank, token_ids };

// Which final tokens make the embedding. Pooled tokens always stand first, so "first" is row 0 of a
// sample.
// mean_sqrt: the sum over the root of the number; max_all: the largest of each column. mean_sound:
// of the patches, those over frames that hold sound (Inputs::frames). attention: a learned query
// attends to them (SigLIP, AIMv2, Perception Encoder), see the pool_... facts.
enum class Pooling {
  first,
  mean_prefix,
  mean_patches,
  mean_all,
  mean_sqrt,
  max_all,
  mean_sound,
  attention
};

// How a position table is brought to another grid (SPEC 3.2, 4): each family does it its own way.
enum class PositionResize {
  antialias_bicubic,  // timm, and the hub's DINOv2 with registers
  bicubic_offset,     // DINO, DINOv2: scale factor (grid + 0.1) / stored grid
  bicubic,            // Hugging Face: output size given, no antialias
  bicubic_corners,    // torchvision: corners aligned
  bilinear,           // the original AugReg files, as timm reads them
  cut_bilinear,       // SSAST, AST: time axis cut to its centre, then bilinear
  cut,                // Whisper: a shorter sound has the first of them
};

// The evaluation transform that belongs to the checkpoint (SPEC 3.4).
struct PreprocessFacts {
  Preprocess transform;  // but for its input size, which is Architecture::input_h
  bool augreg = false;   // weights of AugReg, wherever the other facts come from
  std::string source = "assumed: ImageNet statistics";  // where these facts come from
  bool assumed = true;                                  // nothing but a name speaks for them
  bool stated_colours = false, stated_resize = false,
       stated_crop = false;  // the user's word, also against a preset
  bool operator==(const PreprocessFacts&) const = default;
};

// The front end that belongs to the checkpoint of a model of sounds.
struct SoundFacts {
  SoundFrontEnd front_end;
  std::string source = "assumed: the family's";  // where these facts come from
  bool assumed = true;                           // nothing but a name speaks for them
  bool stated_statistics = false;                // mean and std are the user's word
  bool operator==(const SoundFacts&) const = default;
};

struct Architecture {
  std::string family = "vit";    // see families()
  std::string dialect = "timm";  // whose tensor names
  InputKind input = InputKind::image;

  size_t width = 0, depth = 0, heads = 0, head_dim = 0, mlp_hidden = 0;
  size_t embedding_width = 0;  // what the backbone gives: width, or that of the projection head
  bool heads_assumed = false;  // nothing tells their number: as many as usual for the width

  // image and filter bank
  size_t channels = 3, patch_h = 16, patch_w = 16, stride_h = 16, stride_w = 16;
  size_t input_h = 224, input_w = 224;
  size_t stored_grid_h = 14, stored_grid_w = 14;  // of the position table in the file
  PositionResize position_resize = PositionResize::antialias_bicubic;
  size_t prefix_tokens = 1;        // class token, distillation token, registers
  bool position_on_prefix = true;  // the table has rows for the class (and distillation) token
  size_t registers = 0;            // those of the prefix tokens that never get a position
  bool patch_bias = true;
  bool patch_norm = false;  // AIMv2: a norm of the patches before their positions
  bool mask_token = false;
  // Whisper: in place of patches two convolutions over three frames each, the second one of every
  // other frame, each followed by GELU; patch and stride then say how many tokens there are.
  bool convolutions = false;

  // token ids
  size_t vocabulary = 0, max_positions = 0;
  bool position_table = true;  // a learned row per position; ModernBERT and DINOv3 have none
  bool token_types = true;     // a row for the type of the tokens, which is always the first
  size_t word_width = 0;       // ALBERT's words are narrower than the model; 0: as wide
  // RoBERTa: positions count the tokens other than this, from it + 1 on; BERT: all, from 0 on
  std::optional<size_t> padding_id;
  size_t relative_buckets = 0, relative_distance = 128;  // T5, MPNet; 0 = none

  // blocks
  size_t shared_blocks = 0;  // ALBERT: so many have weights of their own, run in turns; 0: all
  bool rms_norm = false, post_norm = false;
  bool norm_bias = true;
  bool first_norm = true;  // ModernBERT's first block has no norm before its attention
  float norm_epsilon = 1e-6f;
  bool norm_pre = false;  // a norm after the embedding (CLIP; BERT's embedding norm)
  bool layer_scale = false;
  bool qkv_bias = true, linear_bias = true;       // linear_bias: proj, fc1, fc2
  bool attention_norm = false, mlp_norm = false;  // EVA's inner norms
  bool gated_mlp = false;  // act(gate) ⊙ value; fc1 holds gate rows, then value rows
  kernel::Activation activation = kernel::Activation::gelu;
  bool scale_attention = true;  // by 1/sqrt(head_dim); T5 does not
  // Of words by their positions, of which two halves of a head are pairs. Of images on the patches:
  // row and column as on a grid of rotary_grid (EVA-02; 0: as they are), from rotary_offset on.
  bool rotary = false;
  size_t rotary_grid = 16;
  float rotary_offset = 0;            // Perception Encoder: 1
  bool rotary_columns_first = false;  // the first half of the angles is of the column, not the row
  // DINOv3: from -1 at one edge of the picture to 1 at the other; halves of a head are pairs.
  bool rotary_centred = false;
  // local: of words, in local blocks
  float rotary_theta = 10000, local_rotary_theta = 10000;
  // ModernBERT: every global_every-th block sees all tokens, in the others a token sees those that
  // are at most so far away; 0 = all blocks are global
  size_t local_distance = 0, global_every = 1;

  // output
  Pooling pooling = Pooling::first;
  bool final_norm = true;
  bool norm_after_pooling = false;       // timm's fc_norm
  bool head = false, head_bias = false;  // projection to embedding_width
  bool unit_embedding = false;           // divided by its length
  // Pooling::attention: keys and values of every token (or of the patches), heads of its own, then
  // a linear layer and, with a hidden width, an MLP around which the residual goes.
  size_t pool_heads = 0, pool_hidden = 0;
  kernel::Activation pool_activation = kernel::Activation::gelu;
  bool pool_query = true;   // the query is learned before a linear layer; AIMv2's is by itself
  bool pool_bias = true;    // of query, keys and values
  bool pool_prefix = true;  // the prefix tokens are attended to as well

  PreprocessFacts preprocess;
  SoundFacts sound;  // of filter banks

  bool operator==(const Architecture&) const = default;
  size_t grid_h() const { return (input_h - patch_h) / stride_h + 1; }
  size_t grid_w() const { return (input_w - patch_w) / stride_w + 1; }
  size_t patches() const { return grid_h() * grid_w(); }
  // Of a view; of a text at most, or as many as usual where the model sets no end.
  size_t tokens() const {
    const size_t unused = padding_id ? *padding_id + 1 : 0;  // positions
    if (input == InputKind::token_ids) return max_positions > unused ? max_positions - unused : 512;
    return prefix_tokens + patches();
  }
  size_t attention_width() const { return heads * head_dim; }
  size_t words_width() const { return word_width ? word_width : width; }
  size_t stored_blocks() const { return shared_blocks ? shared_blocks : depth; }
  // The block whose weights block i is run with.
  size_t stored_block(size_t i) const { return shared_blocks ? i * shared_blocks / depth : i; }
  bool is_local(size_t block) const { return local_distance && block % global_every; }
  // How many leading tokens the embedding needs; 0 = all of them, or as many as hold sound.
  size_t pooled_tokens() const;
  size_t sound_tokens(size_t frames) const;  // patches over the first so many frames; 0 = all
  size_t parameters() const;                 // weights and biases, for information
  double forward_flops(
      size_t token_count) const;  // multiply and add counted as two, embedding only, nothing pruned
};

// Facts the user states because the file cannot: heads, activation, pooling, norm_epsilon, size,
// prefix, family; and of the evaluation transform mean, std, resize, squash, crop, interpolation;
// of sounds frames, mean, std.
using StatedFacts = std::map<std::string, std::string>;

// A record by name, for benchmarks without a file: vit_base_patch16_224, deit_tiny_patch16_224,
// dinov2_vits14, ...
Architecture named_architecture(std::string_view name);

// The facts as (name, value) lines for people; architecture_json.h is for programs.
std::vector<std::pair<std::string, std::string>> describe(const Architecture& a);

const char* to_string(InputKind kind);
const char* to_string(Pooling pooling);
const char* to_string(PositionResize resize);
const char* to_string(kernel::Activation activation);
kernel::Activation parse_activation(std::string_view name);
Pooling parse_pooling(std::string_view name);

}  // namespace fungi
