// SPDX-License-Identifier: Apache-2.0
// What a caller can do wrong with a Backbone: matrices of another shape, calls out of order, a file
// that changes beneath it.
#include <gtest/gtest.h>

#include <thread>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/recipes.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

Architecture tiny() {
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 2, a.width = a.embedding_width = 48, a.heads = 3, a.head_dim = 16, a.mlp_hidden = 96;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = 8, a.input_h = a.input_w = 24;
  a.stored_grid_h = a.stored_grid_w = 3;
  return a;
}

class BackboneArguments : public testing::Test {
 protected:
  Backbone make(bool tokens, const char* layer = "blocks.-1.attn.proj") {
    return Backbone::assemble(tiny(), RandomTensors(1), {.layer = layer, .tokens = tokens}, pool_);
  }
  void forward(const Backbone& backbone) {
    backbone.forward(Inputs::images(pixels_), workspace_, embeddings_);
  }

  static constexpr size_t kTokens = 2 * 10;  // of two views
  Pool pool_{1};
  Workspace workspace_;
  LayerGradient gradient_;
  Matrix<float> pixels_{2, 3 * 24 * 24}, embeddings_{2, 48}, narrow_{2, 1};
};

TEST_F(BackboneArguments, ForwardChecksTheShapes) {
  const Backbone plain = make(false), dense = make(true);
  const Inputs inputs = Inputs::images(pixels_);
  EXPECT_ERROR("embeddings: expected a 2x48 matrix, found 2x1",
               plain.forward(inputs, workspace_, narrow_));
  Matrix<float> tokens(kTokens, 48), thin(kTokens, 1), few(1, 48);
  EXPECT_ERROR("without tokens", plain.forward(inputs, workspace_, embeddings_, tokens));
  EXPECT_ERROR("expected a 20x48 matrix, found 20x1",
               dense.forward(inputs, workspace_, embeddings_, thin));
  EXPECT_ERROR("found 1x48", dense.forward(inputs, workspace_, embeddings_, few));
  dense.forward(inputs, workspace_, embeddings_, tokens);
}

TEST_F(BackboneArguments, BackwardChecksTheShapes) {
  const Backbone plain = make(false), dense = make(true);
  Matrix<float> one(1, 48), tokens(kTokens, 48), few(1, 1);
  EXPECT_ERROR("another backbone", plain.backward(embeddings_, workspace_, gradient_));
  forward(plain);
  EXPECT_ERROR("d_embeddings: expected a 2x48 matrix, found 2x1",
               plain.backward(narrow_, workspace_, gradient_));
  EXPECT_ERROR("found 1x48", plain.backward(one, workspace_, gradient_));
  EXPECT_ERROR("d_tokens: the backbone was opened without tokens",
               plain.backward(embeddings_, workspace_, gradient_, tokens));
  plain.backward(embeddings_, workspace_, gradient_);
  forward(dense);
  EXPECT_ERROR("d_tokens: expected a 20x48 matrix, found 1x1",
               dense.backward(embeddings_, workspace_, gradient_, few));
  dense.backward(embeddings_, workspace_, gradient_, tokens);
}

TEST_F(BackboneArguments, RecordingsCheckTheirs) {
  const Backbone plain = make(false);
  Recording small(plain, 1), recording(plain, 2);
  forward(plain);
  EXPECT_ERROR("room for 2 more views", plain.record(workspace_, small));
  plain.record(workspace_, recording);
  EXPECT_ERROR("room for 2 more views", plain.record(workspace_, recording));
  EXPECT_ERROR("expected a 2x48 matrix, found 2x1",
               plain.backward(narrow_, recording, 0, workspace_, {&gradient_, 1}));
  for (const size_t first : {size_t{1}, size_t{3}, SIZE_MAX, SIZE_MAX - 1})
    EXPECT_ERROR("among the 2 recorded",
                 plain.backward(embeddings_, recording, first, workspace_, {&gradient_, 1}));
  plain.backward(embeddings_, recording, 0, workspace_, {&gradient_, 1});
  EXPECT_ERROR("run forward()", plain.backward(embeddings_, workspace_, gradient_));
  EXPECT_ERROR("run forward()", plain.record(workspace_, small));
  const Backbone dense = make(true);
  forward(dense);
  Recording none(dense, 2);
  EXPECT_ERROR("cannot record", dense.record(workspace_, none));
  EXPECT_THROW(Recording(plain, SIZE_MAX / 64), std::bad_alloc);
}

TEST_F(BackboneArguments, WithoutALayerThereIsNone) {
  const Backbone none = make(false, "none");
  forward(none);
  EXPECT_ERROR("without a layer", none.backward(embeddings_, workspace_, gradient_));
  EXPECT_ERROR("without a layer", none.layer_inputs());
  EXPECT_ERROR("without a layer", none.layer_outputs());
  EXPECT_ERROR("without a layer", none.layer_bias());
}

TEST_F(BackboneArguments, CopiesShareTheWeights) {
  std::optional<Backbone> first = make(false);
  const Backbone copy = *first;
  EXPECT_EQ(&copy.architecture(), &first->architecture());
  forward(*first);
  first.reset();
  copy.backward(embeddings_, workspace_, gradient_);  // of the same weights: same workspace
  static_assert(!std::is_constructible_v<CheckpointTensors, Checkpoint, Recipes>);
}

TEST(BackboneSum, IsThatOfTheWeightsInUse) {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "model.safetensors";
  const auto put = [&](const char* model) {
    fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / model / "model.safetensors",
                  folder / "new");
    fs::rename(folder / "new", file);
  };
  Pool pool(1);
  const BackboneOptions options{.stated_facts = {{"heads", "4"}}};
  put("timm_vit");
  const Backbone known = Backbone::open(file, options, pool);
  const Backbone asked_late = Backbone::open(file, options, pool);
  std::vector<std::string> sums(4);
  std::vector<std::thread> threads;
  for (std::string& sum : sums) threads.emplace_back([&] { sum = known.sha256(); });
  for (std::thread& t : threads) t.join();
  for (const std::string& sum : sums) EXPECT_EQ(sum, Checkpoint::open(file).sha256());
  put("timm_vit_head");
  EXPECT_EQ(known.sha256(), sums[0]) << "is remembered";
  EXPECT_ERROR("changed or replaced", asked_late.sha256());
  EXPECT_ERROR("changed or replaced", asked_late.sha256());
  // The same bytes under the same name, written again: nobody can tell without having the sum.
  const Backbone again = Backbone::open(file, options, pool);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(5));
  EXPECT_ERROR("changed or replaced", again.sha256());
}

}  // namespace
}  // namespace fungi
