// SPDX-License-Identifier: Apache-2.0
// What is behind Backbone and Workspace, and one pass over a batch that joins them. Internal to
// this room.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fungi/backbone/attention_pool.h"
#include "fungi/backbone/backbone.h"
#include "fungi/backbone/block.h"
#include "fungi/backbone/embed.h"
#include "fungi/backbone/tensors.h"

namespace fungi {

// No two backbones of a process have the same; an address may come again.
uint64_t next_backbone_number();

struct Backbone::Weights {
  const uint64_t number = next_backbone_number();
  Architecture arch;
  BackboneOptions options;
  const kernel::Kernel *kernel = nullptr, *products = nullptr;  // these of most layers' forward
  std::optional<LayerId> layer;  // the first of the next: a gradient goes back as far as to it
  std::vector<LayerId> layers;   // in the order of the forward pass
  std::filesystem::path path;
  std::vector<std::string> notes;  // see Backbone
  std::string stamp;               // of the files at path when they were opened
  mutable std::once_flag hashed;
  mutable std::string sha256;  // of them, once asked for
  Embedding embedding;
  std::vector<Block> packed;      // blocks that are run with the same weights are one
  std::vector<size_t> packed_of;  // of every block
  Norm final_norm;
  AttentionPool pool;  // of Pooling::attention
  Linear head;
  std::shared_ptr<const WordHead> word_head;
  Matrix<float> rotary;          // [patches or words, 2·head_dim]: cosines, sines
  Matrix<float> local_rotary;    // the same of local blocks
  Matrix<float> relative_table;  // [buckets, heads]
  size_t depth() const { return packed_of.size(); }
  const Block& block(size_t i) const { return packed[packed_of[i]]; }
  const Block& last() const { return packed[packed_of.back()]; }
};

struct Workspace::State {
  uint64_t backbone = 0;  // the number of the one that ran here last; 0 = none
  Batch batch;
  PictureGrids grids;
  Floats x;  // the stream; after forward, the last block's output
  Floats normed, pooled, pooled_normed, g, g_pooled, g_tokens;
  Floats raw, g_raw;              // the embeddings before they are divided by their lengths
  PoolState pool;
  std::vector<uint32_t> largest;  // max_all: [samples, width], the row of each largest value
  std::vector<BlockState> kept;   // of blocks layer.block .. depth − 1
  BlockState passing;             // of all others
  Scratch scratch;
  bool ready = false;  // a forward() has filled it
};

// Error unless a caller's matrix has that shape: kernels do not ask.
void check_shape(const char* what, View<const float> found, size_t rows, size_t cols);

// Binds the const weights to a workspace for one forward or backward.
struct Run {
  const Backbone::Weights& w;
  Workspace& workspace;
  Workspace::State& s;

  // What another backbone left in the workspace has other sizes, types or values.
  Run(const Backbone& backbone, Workspace& ws)
      : w(*backbone.weights_), workspace(ws), s(*ws.state_) {
    if (s.backbone == w.number) return;
    s = Workspace::State();
    s.backbone = w.number;
  }

  bool pruned() const { return w.last().pruned; }
  size_t last_rows() const { return pruned() ? s.batch.query_offsets.back() : s.batch.rows(); }
  BlockContext context(size_t index);

  void forward(const Inputs& inputs);
  void finish(View<float> embeddings, View<float> tokens);  // final norm, pooling, head
  void start_backward(View<const float> d_embeddings,
                      View<const float> d_tokens);  // their backward, into s.g
  void backward(std::span<LayerGradient> gradients);  // one for each of w.layers
};

}  // namespace fungi
