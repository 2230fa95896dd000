// SPDX-License-Identifier: Apache-2.0
// Index folders from before lengths of rows were stored with an index, graphs of hnswlib among
// them: they open, and give the answers that the program gave which wrote them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/retrieve/feature_index.h"
#include "fungi/search/knn.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

const std::filesystem::path kGolden = FUNGI_GOLDEN_DIR "/retrieve";

TEST(IndexWithoutNorms, OpensAndGivesTheAnswersOfItsTime) {
  const auto answers = nlohmann::json::parse(std::ifstream(kGolden / "answers.json"));
  Pool pool(2);
  for (const char* kind : {"exact", "ivf", "hnsw"}) {
    ASSERT_FALSE(std::filesystem::exists(kGolden / kind / "norms.npy"));
    const FeatureIndex index = FeatureIndex::open(kGolden / kind);
    EXPECT_STREQ(to_string(index.index().kind()), kind);
    EXPECT_EQ(index.index().metric(), Metric::cosine);
    EXPECT_EQ(index.record().manifest.classes.size(), 10u);
    ASSERT_EQ(answers[kind].size(), 12u);
    for (const auto& query : answers[kind]) {
      SCOPED_TRACE(std::string(kind) + " " + query["row"].get<std::string>());
      const std::optional<size_t> row = index.find(query["row"].get<std::string>());
      ASSERT_TRUE(row);
      const Neighbours found =
          index.index().search(index.index().row(*row), 7, pool, {.probes = 3, .effort = 8});
      ASSERT_EQ(query["neighbours"].size(), 7u);
      for (size_t b = 0; b < 7; ++b) {
        EXPECT_EQ(found.index(0, b), query["neighbours"][b][0].get<uint32_t>());
        EXPECT_EQ(found.value(0, b), query["neighbours"][b][1].get<double>());
      }
    }
  }
}

// What is saved by now has the lengths, from a matrix or from an older index's vectors.
TEST(IndexWithoutNorms, BuiltAnewHasThem) {
  const test::TemporaryFolder folder;
  Pool pool(2);
  for (const IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw}) {
    const FeatureIndex older = FeatureIndex::open(kGolden / to_string(kind));
    Matrix<float> rows(60, older.index().width());
    for (size_t i = 0; i < 60; ++i)
      std::copy_n(older.index().row(i).data, rows.cols(), rows.row(i));
    const Index index = Index::build(rows, {.kind = kind, .metric = Metric::cosine}, pool);
    index.save(folder / "index");
    EXPECT_TRUE(std::filesystem::exists(folder / "index/norms.npy"));
    EXPECT_EQ(index.search(rows, 1, pool, {.probes = 40}).value(7, 0),
              knn(rows, rows, 1, pool, {.metric = Metric::cosine}).value(7, 0));
  }
}

}  // namespace
}  // namespace fungi
