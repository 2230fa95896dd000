// SPDX-License-Identifier: Apache-2.0
// The evaluation verbs and their user: defaults that small stores allow, and the same words for the
// same things.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fungi/base/random.h"
#include "tests/support/command.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

class EvaluateUser : public testing::Test {
 protected:
  EvaluateUser() {
    for (const auto& [name, rows] : {std::pair("train", 9), std::pair("test", 6)}) {
      std::vector<test::MadeRow> made;
      for (int i = 0; i < rows; ++i) {
        const RandomStream random(uint64_t(rows), "made row", uint64_t(i));
        std::vector<float> row;
        for (size_t c = 0; c < 8; ++c) row.push_back(float(random.normal(c) + (i % 3 ? 0 : 2)));
        made.push_back({fmt::format("{}", i), i % 3, {row}});
      }
      test::write_made_store(folder_ / name, made, {"x", "y", "z"});
    }
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Outcome run(const std::string& verb, const std::string& more = "") const {
    return run_fungi(verb + " " + at("train") + " " + at("test") + " -j 2 " + more);
  }
  test::TemporaryFolder folder_;
};

TEST_F(EvaluateUser, TheUsualNumberOfNeighboursGivesWayToFewRows) {
  const Outcome knn = run("knn", "--json");
  ASSERT_EQ(knn.status, 0) << knn.err;
  EXPECT_EQ(Json::parse(knn.out)[0]["k"], 9);
  EXPECT_NE(knn.err.find("9 training rows are fewer"), std::string::npos) << knn.err;
  const Outcome shots = run("knn", "--shots 1 --json");
  ASSERT_EQ(shots.status, 0) << shots.err;
  EXPECT_EQ(Json::parse(shots.out)[0]["k"], 3);
  EXPECT_EQ(run("knn", "-k 20").status, 1) << "what was given is not changed";
  EXPECT_EQ(run("knn", "-k 5").err.find("note"), std::string::npos);
  const std::string page = " -o " + at("page.html");
  const Outcome report = run("report", page);
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.err.find("9 training rows are fewer"), std::string::npos) << report.err;
  EXPECT_NE(test::read_file(folder_ / "page.html").find("k = 9"), std::string::npos);
  EXPECT_EQ(run("report", "-k 20" + page).status, 1);
}

TEST_F(EvaluateUser, ProbesAndNeighboursHaveTheSameWords) {
  const std::string validation = " --json --validation " + at("test");  // a fifth is too small here
  const Json knn = Json::parse(run("knn", "-k 3 --pca 4 --json").out)[0],
             linear = Json::parse(run("linear", "--pca 4" + validation).out)[0],
             few = Json::parse(run("linear", "--shots 1" + validation).out)[0];
  for (const char* key : {"features", "accuracy", "standard_error", "mean_per_class_accuracy",
                          "columns", "train_rows", "test_rows", "pca", "pca_applied", "shots"}) {
    EXPECT_TRUE(knn.contains(key)) << key;
    EXPECT_TRUE(linear.contains(key)) << key;
  }
  EXPECT_EQ(linear["columns"], 4);
  EXPECT_EQ(linear["train_rows"], 9);
  EXPECT_EQ(linear["test_rows"], 6);
  EXPECT_EQ(few["train_rows"], 3) << "one of each class";
  EXPECT_EQ(few["columns"], 8);
}

TEST_F(EvaluateUser, TooManyShotsNameTheClass) {
  for (const Outcome& o :
       {run("knn", "--shots 4"), run("linear", "--shots 4 --validation " + at("test"))}) {
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find("expected at least 4 rows of each class, class 'x' has 3"),
              std::string::npos)
        << o.err;
  }
}

TEST_F(EvaluateUser, RetrieveSaysWhichQueriesItLeavesOut) {
  const auto write = [&](const std::string& name, const std::vector<int64_t>& labels) {
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < labels.size(); ++i)
      rows.push_back({fmt::format("{}", i), labels[i], {{float(i % 2), float(i), 1.0f}}});
    test::write_made_store(folder_ / name, rows, {});
  };
  write("database", {0, 1, 0, 1, 4});
  write("queries", {0, 1, 5, 5, 6, -1, 0});
  const auto retrieve = [&](const std::string& stores) {
    return run_fungi("retrieve " + at("database") + " " + stores);
  };
  const Outcome text = retrieve(at("queries"));
  ASSERT_EQ(text.status, 0) << text.err;
  const std::string strange =
                        "3 of 7 queries are of 2 classes without rows in the database: they are "
                        "left out",
                    unlabelled = "1 of 7 queries have no label: they are left out",
                    alone = "1 of 5 queries are the only row of their class: they are left out";
  EXPECT_EQ(text.err, "note: " + strange + "\nnote: " + unlabelled + "\n");
  EXPECT_TRUE(text.out.ends_with("\nclass: 3 of 7 queries have relevant rows and are scored\n"))
      << text.out;
  const Json json = Json::parse(retrieve(at("queries") + " --json").out)[0];
  EXPECT_EQ(json["notes"], Json({strange, unlabelled}));
  EXPECT_EQ(json["queries"], 3);
  EXPECT_EQ(json["queries_left_out"], 4);
  EXPECT_EQ(Json::parse(retrieve(at("database") + " --json").out)[0]["notes"], Json({alone}));
  const Outcome whole = run("retrieve", "--json");
  EXPECT_TRUE(Json::parse(whole.out)[0]["notes"].empty()) << whole.out;
}

TEST_F(EvaluateUser, ExportKnowsTheOptionOfOtherVerbs) {
  const std::string store = "export " + at("train") + " ";
  EXPECT_EQ(run_fungi(store + "-o " + at("a.npz")).status, 0);
  EXPECT_EQ(run_fungi(store + at("b.npz")).status, 0);
  EXPECT_EQ(test::read_file(folder_ / "a.npz"), test::read_file(folder_ / "b.npz"));
  EXPECT_EQ(run_fungi(store).status, 2);
  EXPECT_EQ(run_fungi(store + "-o f.h5").status, 2);
}

TEST_F(EvaluateUser, InfoKnowsWhatTheOtherVerbsWrote) {
  ASSERT_EQ(run_fungi("index " + at("train") + " --kind exact --pca 3 -o " + at("i")).status, 0);
  ASSERT_EQ(run_fungi("pca " + at("train") + " --dim 4 -o " + at("p")).status, 0);
  const Outcome index = run_fungi("info " + at("i")), pca = run_fungi("info " + at("p"));
  EXPECT_NE(index.out.find("exact index of 9 rows"), std::string::npos) << index.out << index.err;
  EXPECT_NE(index.out.find("3 columns, 8 before its PCA"), std::string::npos) << index.out;
  EXPECT_NE(pca.out.find("PCA for 'fungi pca --apply', fitted on 9 rows"), std::string::npos)
      << pca.out << pca.err;
  EXPECT_NE(pca.out.find("8 columns to 4"), std::string::npos) << pca.out;
  EXPECT_EQ(Json::parse(run_fungi("info --json " + at("i")).out)["columns"], 3);
  EXPECT_EQ(Json::parse(run_fungi("info --json " + at("p")).out)["dim"], 4);
  EXPECT_EQ(run_fungi("info " + folder_.path().string()).status, 1);
}

}  // namespace
}  // namespace fungi
