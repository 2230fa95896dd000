// SPDX-License-Identifier: Apache-2.0
// How pictures are to be decoded reaches the rows and the negatives.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

class Decode : public ::testing::Test {
 protected:
  Decode() {
    for (const char* name : {"cut.jpg", "exif_6.jpg"})
      fs::copy(fs::path(FUNGI_GOLDEN_DIR) / "input/images" / name, folder_ / name);
  }

  struct Run {
    StoreRows rows;
    Matrix<float> negatives;
  };

  // Sample 0 is the one cut off, sample 1 the one on its side.
  Run run(const DecodeOptions& decode) const {
    Pool pool(1);
    const Backbone backbone = test::tiny_backbone(pool);
    ExtractorOptions o;
    o.objectives = {"kl:width=8", "simclr:width=8,negatives=2"};
    o.projection_rows = 20;
    o.decode = decode;
    Extractor extractor(backbone, std::move(o), pool);
    const auto data = open_dataset(folder_.path());
    EXPECT_EQ(data->size(), 2u);
    EXPECT_EQ(data->id(0), "cut.jpg");
    EXPECT_TRUE(extractor.fit(*data));
    Run run{extractor.extract(*data, test::range(2)), {}};
    for (NamedMatrix& m : extractor.state())
      if (m.name == "simclr-negatives") run.negatives = std::move(m.values);
    return run;
  }

  static bool same_row(const Run& x, const Run& y, size_t block, size_t i) {
    const Matrix<float>& rows = x.rows.blocks.at(block);
    return std::equal(rows.row(i), rows.row(i) + rows.cols(), y.rows.blocks.at(block).row(i));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Decode, ATurnedPictureHasAnotherRowAndOtherNegatives) {
  const Run plain = run({}), turned = run({.exif_orientation = true});
  for (const size_t block : {0, 1}) EXPECT_FALSE(same_row(plain, turned, block, 1)) << block;
  ASSERT_GT(plain.negatives.rows(), 0u);
  EXPECT_EQ(plain.negatives.rows(), turned.negatives.rows());
  EXPECT_FALSE(test::same(plain.negatives, turned.negatives));
}

TEST_F(Decode, APictureCutOffHasARowAndNegativesWhereThatIsAllowed) {
  const Run plain = run({}), allowed = run({.allow_truncated = true});
  ASSERT_EQ(plain.rows.failures.size(), 1u);
  EXPECT_EQ(plain.rows.failures[0].position, 0u);
  EXPECT_EQ(plain.rows.failures[0].stage, "decode");
  EXPECT_TRUE(allowed.rows.failures.empty());
  for (const size_t block : {0, 1}) {
    EXPECT_FALSE(same_row(plain, allowed, block, 0)) << block;
    EXPECT_TRUE(same_row(plain, allowed, block, 1)) << block;
  }
  EXPECT_EQ(allowed.negatives.rows(), 2 * plain.negatives.rows());
}

}  // namespace
}  // namespace fungi
