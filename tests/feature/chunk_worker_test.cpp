// SPDX-License-Identifier: Apache-2.0
// Samples with few views share a chunk, and thereby a batch of the backbone: each must get its own
// views, gradient and factors.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"

namespace fungi {
namespace {

using test::Pictures;
using test::range;
using test::tiny;

void expect_same_alone(BackboneOptions options, bool recorded) {
  Pool pool(1);
  const Backbone backbone = Backbone::assemble(tiny(), RandomTensors(1), std::move(options), pool);
  EXPECT_EQ(backbone.can_record(), recorded);
  ExtractorOptions o;
  o.objectives = {"kl", "dino:width=8,local_crops=1"};
  o.projection_rows = 20;
  Extractor extractor(backbone, std::move(o), pool);
  const Pictures data(7);
  ASSERT_GE(backbone.preferred_batch(), 7 * extractor.views_per_sample()) << "more than one chunk";
  const StoreRows together = extractor.extract(data, range(7));
  EXPECT_TRUE(together.failures.empty());
  for (size_t i = 0; i < 7; ++i) {
    const size_t index[] = {i};
    const StoreRows alone = extractor.extract(data, index);
    for (size_t b = 0; b < alone.blocks.size(); ++b) {
      const float* row = alone.blocks[b].row(0);
      EXPECT_TRUE(std::equal(row, row + alone.blocks[b].cols(), together.blocks[b].row(i)))
          << "sample " << i << ", block " << b;
    }
  }
}

TEST(ChunkWorker, SamplesOfAChunkAreAsAlone) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    expect_same_alone({.precision = precision}, true);
    expect_same_alone({.precision = precision, .layer = "blocks.0.attn.proj"}, false);
  }
}

}  // namespace
}  // namespace fungi
