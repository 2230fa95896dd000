// SPDX-License-Identifier: Apache-2.0
// knn and retrieve with --exact-gradients: the limit of ever wider projections, and clear words
// where it cannot be.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/factor_store.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

class ExactGradients : public testing::Test {
 protected:
  ExactGradients() {
    test::write_factor_store(folder_ / "train", 45, 1);
    test::write_factor_store(folder_ / "test", 21, 2);
  }
  Outcome run(const std::string& verb, const std::string& more, const std::string& train = "train",
              const std::string& test = "test") {
    return run_fungi(verb + " " + (folder_ / train).string() + " " + (folder_ / test).string() +
                     " -j 2 " + more);
  }
  Json json(const std::string& verb, const std::string& more, const std::string& train = "train",
            const std::string& test = "test") {
    const Outcome o = run(verb, more + " --json", train, test);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? Json::parse(o.out) : Json::array();
  }
  test::TemporaryFolder folder_;
};

// Votes of the 3 nearest by brute force over double-precision rows; labels are row % 3.
double plain_accuracy(size_t train_rows, const std::vector<size_t>& gradients) {
  size_t right = 0;
  for (size_t q = 0; q < 21; ++q) {
    const std::vector<double> x = test::limit_row(test::made_sample(2, q), true, gradients);
    std::vector<std::pair<double, size_t>> sorted;
    for (size_t i = 0; i < train_rows; ++i)
      sorted.push_back(
          {-2 * test::dot(x, test::limit_row(test::made_sample(1, i), true, gradients)), i});
    for (auto& [key, i] : sorted) {
      const std::vector<double> y = test::limit_row(test::made_sample(1, i), true, gradients);
      key += test::dot(x, x) + test::dot(y, y);
    }
    std::sort(sorted.begin(), sorted.end());
    size_t votes[3] = {0, 0, 0};
    for (size_t b = 0; b < 3; ++b) ++votes[sorted[b].second % 3];
    right += size_t(std::max_element(votes, votes + 3) - votes) == q % 3;
  }
  return double(right) / 21;
}

TEST_F(ExactGradients, KnnVotesByWholeGradients) {
  const Json rows = json("knn", "-k 3 --exact-gradients");
  ASSERT_EQ(rows.size(), 4u);  // embedding, +kl, +dino, +simclr
  const std::vector<std::vector<size_t>> gradients = {{}, {0}, {0, 1}, {0, 1, 2}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(rows[i]["accuracy"], plain_accuracy(45, gradients[i])) << rows[i];
    EXPECT_EQ(rows[i]["exact_gradients"], true);
    EXPECT_EQ(rows[i]["pca"], 0);
    EXPECT_EQ(rows[i]["columns"], test::kEmbedding + i * test::kOutputs * (test::kInputs + 1));
  }
  EXPECT_FALSE(json("knn", "-k 3 --features embedding")[0].contains("exact_gradients"));
  // The first 4 rows of each class are the first 12 rows.
  EXPECT_EQ(json("knn", "-k 3 --memory 1"), json("knn", "-k 3 --memory 1GB"))
      << "rows in a scratch file and in memory";
  const Json few = json("knn", "-k 3 --shots 4 --exact-gradients --features embedding+kl+dino");
  EXPECT_DOUBLE_EQ(few[0]["accuracy"], plain_accuracy(12, {0, 1}));
  EXPECT_EQ(few[0]["train_rows"], 12);
}

TEST_F(ExactGradients, RetrieveRanksAsAVeryWideProjectionDoes) {
  for (const char* name : {"train", "test"})
    ASSERT_EQ(
        run_fungi("project " + (folder_ / name).string() + " -o " +
                  (folder_ / (std::string("wide-") + name)).string() + " --projection-dim 60000 -q")
            .status,
        0);
  const std::string features = "--features embedding+kl+dino+simclr";
  const Json exact = json("retrieve", features + " --exact-gradients"),
             wide = json("retrieve", features + " --pca 0", "wide-train", "wide-test");
  EXPECT_EQ(exact[0]["exact_gradients"], true);
  EXPECT_EQ(exact[0]["queries"], 21);
  EXPECT_NEAR(exact[0]["map"], wide[0]["map"], 0.01);
  EXPECT_DOUBLE_EQ(json("retrieve", "--features embedding --exact-gradients")[0]["map"],
                   json("retrieve", "--features embedding --pca 0")[0]["map"]);
}

TEST_F(ExactGradients, ClearRefusals) {
  ASSERT_EQ(run_fungi("project " + (folder_ / "train").string() + " -o " +
                      (folder_ / "bare").string() + " -q")
                .status,
            0);
  for (const char* verb : {"knn", "retrieve"}) {
    const Outcome factors = run(verb, "--exact-gradients --features embedding+kl", "bare");
    EXPECT_EQ(factors.status, 1);
    EXPECT_NE(factors.err.find("extract again with --keep-factors"), std::string::npos)
        << factors.err;
    const Outcome pca = run(verb, "--exact-gradients --pca 64");
    EXPECT_EQ(pca.status, 2);
    EXPECT_NE(pca.err.find("nothing to shrink"), std::string::npos) << pca.err;
    EXPECT_EQ(run(verb, "--exact-gradients --pca 0").status, 0);
  }
  EXPECT_EQ(run("knn", "-k 3 --exact-gradients --vote distance --metric cosine").status, 2);
  EXPECT_EQ(run("knn", "-k 3 --exact-gradients --vote distance").status, 0);
  EXPECT_EQ(run("knn", "-k 46 --exact-gradients").status, 1);
  EXPECT_EQ(run_fungi("kmeans " + (folder_ / "train").string() + " --exact-gradients").status, 2)
      << "k-means needs rows";
}

}  // namespace
}  // namespace fungi
