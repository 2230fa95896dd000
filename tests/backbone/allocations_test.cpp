// SPDX-License-Identifier: Apache-2.0
// backward() takes its memory from the workspace: once a call of a size was there, the next one of
// that size asks for none.
#include "tests/support/allocations.h"

#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"

namespace fungi {
namespace {

Architecture image() {
  Architecture a;
  a.width = 48, a.depth = 3, a.heads = 2, a.head_dim = 24, a.mlp_hidden = 80;
  a.embedding_width = 40, a.head = true;
  a.input_h = a.input_w = 48, a.stored_grid_h = a.stored_grid_w = 3;
  return a;
}

Architecture text() {
  Architecture a = image();
  a.input = InputKind::token_ids, a.prefix_tokens = 0;
  a.vocabulary = 20, a.max_positions = 12;
  return a;
}

std::vector<Architecture> architectures() {
  std::vector<Architecture> all{image(), image(), image(), text(), text()};
  all[0].layer_scale = true;
  all[1].gated_mlp = all[1].mlp_norm = all[1].attention_norm = all[1].rotary = true;
  all[2].pooling = Pooling::mean_patches, all[2].norm_after_pooling = true;
  all[3].post_norm = all[3].norm_pre = true, all[3].final_norm = false;  // as BERT
  all[4].pooling = Pooling::mean_all, all[4].rms_norm = true;            // as T5
  all[4].max_positions = 0, all[4].relative_buckets = 8;
  return all;
}

struct Views {
  Matrix<float> pixels{3, 3 * 48 * 48};
  std::vector<int32_t> ids{3, 4, 5, 6, 7};
  std::vector<Inputs::Text> texts{{ids, {}}, {ids, {}}, {ids, {}}};
  Inputs of(const Architecture& a) const {
    return a.input == InputKind::image ? Inputs::images(pixels) : Inputs::text(texts);
  }
};

TEST(Backward, AllocatesNothingTheSecondTime) {
  Pool pool(1);
  const Views views;
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8})
    for (const Architecture& a : architectures())
      for (const char* layer : {"blocks.0.attn.qkv", "blocks.0.attn.proj", "blocks.1.mlp.fc1",
                                "blocks.-1.mlp.fc2", "blocks.-1.attn.proj"}) {
        const Backbone backbone =
            Backbone::assemble(a, RandomTensors(1), {.precision = precision, .layer = layer}, pool);
        Workspace workspace;
        LayerGradient gradient;
        Matrix<float> embeddings(3, a.embedding_width);
        size_t asked[2];
        for (size_t& calls : asked) {
          backbone.forward(views.of(a), workspace, embeddings);
          const size_t before = test::requests;
          backbone.backward(embeddings, workspace, gradient);
          calls = test::requests - before;
        }
        EXPECT_GT(asked[0], 0u) << layer;
        EXPECT_EQ(asked[1], 0u) << layer << " of " << to_string(a.input)
                                << (a.post_norm ? ", after-norm" : ", before-norm");
      }
}

TEST(Backward, OfARecordingAllocatesNothingTheSecondTime) {
  Pool pool(1);
  const Views views;
  const Architecture a = image();
  const Backbone backbone = Backbone::assemble(a, RandomTensors(1), {}, pool);
  Workspace workspace;
  LayerGradient gradient;
  Matrix<float> embeddings(3, a.embedding_width);
  Recording recording(backbone, 3);
  backbone.forward(views.of(a), workspace, embeddings);
  backbone.record(workspace, recording);
  backbone.backward(embeddings, recording, 0, workspace, {&gradient, 1});
  const size_t before = test::requests;
  backbone.backward(embeddings, recording, 0, workspace, {&gradient, 1});
  EXPECT_EQ(test::requests, before);
}

}  // namespace
}  // namespace fungi
