// SPDX-License-Identifier: Apache-2.0
// The preset `lib` against the published Python package: features that fungivision 0.0.2 computed
// from the same pictures, weights, heads and projection (tests/golden/compare_fungivision.py, which
// also compares larger models).
#include <gtest/gtest.h>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/extractor.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

const std::string kFolder = FUNGI_GOLDEN_DIR "/fungivision/";

StoreRows extract(Preset preset, Matrix<float>* negatives = nullptr) {
  Pool pool(2);
  const Backbone backbone =
      Backbone::open(kFolder + "model.safetensors",
                     {.precision = Precision::f32, .stated_facts = {{"heads", "2"}}}, pool);
  const Checkpoint given = Checkpoint::open(kFolder + "given.safetensors");
  ExtractorOptions options;
  options.preset = preset;
  options.objectives = {"kl", "dino", "simclr:negatives=3"};
  options.projection = ProjectionKind::matrix;
  for (const TensorInfo& t : given.tensors()) {
    if (t.name == "projection")
      options.projection_matrix = given.read(t.name);
    else
      options.given.push_back({t.name, given.read(t.name)});
  }
  Extractor extractor(backbone, std::move(options), pool);
  const auto pictures = open_dataset(kFolder + "list.txt");
  extractor.fit(*pictures);
  if (negatives)
    for (NamedMatrix& m : extractor.state())
      if (m.name == "simclr-negatives") *negatives = std::move(m.values);
  const size_t all[] = {0, 1, 2, 3};
  return extractor.extract(*pictures, all);
}

TEST(Fungivision, EveryBlockIsTheLibrarys) {
  Matrix<float> negatives;
  const StoreRows rows = extract(Preset::lib, &negatives);
  const golden::Array theirs = golden::load(kFolder + "negatives.npy");
  ASSERT_EQ(theirs.shape, (std::vector<size_t>{3 * 49, 12}));
  ASSERT_EQ(negatives.rows(), theirs.rows());
  EXPECT_LT(golden::relative_error(negatives.data(), theirs.values.data(), theirs.values.size()),
            1e-4);
  const char* blocks[] = {"kl", "dino", "simclr"};
  for (size_t b = 0; b < 3; ++b) {
    const golden::Array expected = golden::load(kFolder + blocks[b] + ".npy");
    ASSERT_EQ(expected.shape, (std::vector<size_t>{4, 16}));
    for (size_t i = 0; i < 4; ++i)
      EXPECT_GT(golden::cosine(rows.blocks[1 + b].row(i), expected.values.data() + 16 * i, 16),
                0.99999)
          << blocks[b] << ", picture " << i;
  }
}

TEST(Fungivision, TheOtherPresetsAreSomethingElse) {  // so the agreement above is no accident of
                                                      // insensitive features
  const StoreRows rows = extract(Preset::native);
  for (size_t b : {0, 2}) {  // DINO differs in nothing for a model with ImageNet's statistics
    const golden::Array expected = golden::load(kFolder + (b ? "simclr" : "kl") + ".npy");
    EXPECT_LT(golden::cosine(rows.blocks[1 + b].row(0), expected.values.data(), 16), 0.9999);
  }
}

}  // namespace
}  // namespace fungi
