// SPDX-License-Identifier: Apache-2.0
// The evaluation verbs and their user: defaults that small stores allow, and the same words for the
// same things.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/base/random.h"
#include "fungi/evaluate/clustering.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/pca/pca.h"
#include "fungi/store/store.h"
#include "tests/support/command.h"
#include "tests/support/made_store.h"
#include "tests/support/plain_cka.h"
#include "tests/support/true_key.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

class EvaluateUser : public testing::Test {
 protected:
  EvaluateUser() {
    write("train", 9);
    write("test", 6);
  }
  // Rows of the classes in turn; those of the first lie aside.
  void write(const std::string& name, int rows) const {
    std::vector<test::MadeRow> made;
    for (int i = 0; i < rows; ++i) {
      const RandomStream random(uint64_t(rows), "made row", uint64_t(i));
      std::vector<float> row;
      for (size_t c = 0; c < 8; ++c) row.push_back(float(random.normal(c) + (i % 3 ? 0 : 2)));
      made.push_back({fmt::format("{}", i), i % 3, {row}});
    }
    test::write_made_store(folder_ / name, made, {"x", "y", "z"});
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

TEST_F(EvaluateUser, DefaultsAreThoseOfTheProtocol) {
  write("many", 25);
  const std::string stores = at("many") + " " + at("test") + " -j 2 --json";
  const Json knn = Json::parse(run_fungi("knn " + stores).out)[0];
  EXPECT_EQ(knn["k"], 20);
  EXPECT_EQ(knn["pca"], 512);
  EXPECT_EQ(knn["shots"], 0);
  for (const std::string verb : {"linear", "retrieve"})
    EXPECT_EQ(Json::parse(run_fungi(verb + " " + stores).out)[0]["pca"], 512) << verb;
  EXPECT_EQ(Json::parse(run_fungi("kmeans " + at("many") + " --json").out)[0]["pca"], 512);
}

// Rows of a store have one length and one order by every metric; rows of a PCA have not.
TEST_F(EvaluateUser, RetrieveRanksByTheMetricAskedFor) {
  write("database", 60);
  write("queries", 20);
  Pool pool(2);
  const FeatureSet database = Store::open(folder_ / "database").load(),
                   queries = Store::open(folder_ / "queries").load();
  const Pca pca = Pca::fit(database.features, 3, pool);
  std::vector<Relevance> relevance(20);
  for (size_t q = 0; q < 20; ++q)
    for (uint32_t i = 0; i < 60; ++i)
      if (i % 3 == q % 3) relevance[q].positive.push_back(i);
  const std::string command =
      "retrieve " + at("database") + " " + at("queries") + " --json --pca 3";
  std::set<double> maps;
  for (const char* metric : {"inner_product", "cosine", "euclidean"}) {
    const double expected = evaluate_retrieval(pca.transform(database.features, pool),
                                               pca.transform(queries.features, pool), relevance,
                                               {.metric = parse_metric(metric)}, pool)
                                .map;
    maps.insert(expected);
    const Outcome o = run_fungi(command + " --metric " + metric);
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_NEAR(Json::parse(o.out)[0]["map"], expected, 1e-12) << metric;
  }
  EXPECT_EQ(maps.size(), 3u);
  EXPECT_EQ(run_fungi(command).out, run_fungi(command + " --metric inner_product").out);
}

TEST_F(EvaluateUser, SimilaritiesDescend) {
  write("store", 60);
  Pool pool(2);
  const Matrix<float> rows = Store::open(folder_ / "store").load().features,
                      shrunk = Pca::fit(rows, 3, pool).transform(rows, pool);
  for (const Metric metric : {Metric::cosine, Metric::inner_product}) {
    const std::string option = std::string(" --metric ") + to_string(metric);
    ASSERT_EQ(run_fungi("index " + at("store") + " --kind exact --pca 3 -o " + at("index") + option)
                  .status,
              0);
    for (const auto& [target, vectors] : {std::pair("store", &rows), std::pair("index", &shrunk)}) {
      const Outcome o = run_fungi("search " + at(target) + " -k 9 --json --row 3 14 59" + option);
      ASSERT_EQ(o.status, 0) << o.err;
      const Json queries = Json::parse(o.out)["queries"];
      ASSERT_EQ(queries.size(), 3u);
      for (const Json& answer : queries) {
        const float* query = vectors->row(std::stoul(answer["row"].get<std::string>()));
        double before = 1e9;
        ASSERT_EQ(answer["neighbours"].size(), 9u);
        EXPECT_EQ(answer["neighbours"][0]["id"], answer["row"]) << target << option;
        for (const Json& near : answer["neighbours"]) {
          const double value = near["similarity"];
          if (near["id"] != answer["row"]) {  // itself comes first, also before longer rows
            EXPECT_LE(value, before);
            before = value;
          }
          const float* row = vectors->row(near["row"].get<size_t>());
          EXPECT_NEAR(value, double(-test::true_key(metric, vectors->cols(), query, row)), 1e-6)
              << target << option;
          EXPECT_FALSE(near.contains("distance"));
        }
      }
    }
  }
}

TEST_F(EvaluateUser, ClustersBySeedAndPca) {
  write("store", 60);
  Pool pool(2);
  const FeatureSet set = Store::open(folder_ / "store").load();
  const Matrix<float> rows = Pca::fit(set.features, 3, pool).transform(set.features, pool);
  std::set<double> overlaps;
  for (const uint64_t seed : {1234u, 1u, 2u, 3u, 4u}) {
    const double expected =
        evaluate_clustering(rows, set.labels, {.seed = seed}, pool).overlap.accuracy;
    overlaps.insert(expected);
    const Outcome o = run_fungi(fmt::format("kmeans {} --pca 3 --json {}", at("store"),
                                            seed == 1234 ? "" : fmt::format("--seed {}", seed)));
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(Json::parse(o.out)[0]["overlap"], expected) << seed;
    EXPECT_EQ(Json::parse(o.out)[0]["pca_applied"], true);
  }
  EXPECT_GT(overlaps.size(), 1u);
}

TEST_F(EvaluateUser, TwoClassesHaveACurve) {
  const auto write_angles = [&](const std::string& name,
                                const std::vector<std::pair<int64_t, double>>& rows) {
    std::vector<test::MadeRow> made;
    for (const auto& [label, degrees] : rows) {
      const double angle = degrees * M_PI / 180;
      made.push_back({fmt::format("{}", made.size()),
                      label,
                      {{float(std::cos(angle)), float(std::sin(angle))}}});
    }
    test::write_made_store(folder_ / name, made, {"x", "y", "z"});
  };
  const auto knn = [&](const std::string& train, const std::string& test) {
    const Outcome o = run_fungi("knn " + at(train) + " " + at(test) + " -k 3 --json");
    EXPECT_EQ(o.status, 0) << o.err;
    return Json::parse(o.out)[0];
  };
  // Of three neighbours one is y near 0 degrees, and two near 90. The shares of the three test rows
  // of y are 2/3, 2/3 and 1/3, of the two of x 1/3 and 2/3: of six pairs two are in order and three
  // are even.
  write_angles("two", {{0, 0}, {0, 10}, {1, 80}, {1, 90}});
  write_angles("three", {{0, 0}, {0, 10}, {1, 80}, {2, 90}});
  write_angles("asked", {{0, 5}, {0, 85}, {1, 85}, {1, 84}, {1, 6}});
  write_angles("alike", {{1, 85}, {1, 5}});
  EXPECT_NEAR(knn("two", "asked")["auc"], 3.5 / 6, 1e-12);
  EXPECT_FALSE(knn("three", "asked").contains("auc"));
  EXPECT_FALSE(knn("two", "alike").contains("auc"));
  EXPECT_NE(run_fungi("knn " + at("two") + " " + at("asked") + " -k 3").out.find("0.5833"),
            std::string::npos);
}

TEST_F(EvaluateUser, CkaPrintsTheSimilarityOfTheUnitRows) {
  std::vector<test::MadeRow> rows;
  Matrix<float> a(20, 3), b(20, 5);
  for (size_t i = 0; i < 20; ++i) {
    const RandomStream random(3, "cka rows", i);
    for (Matrix<float>* block : {&a, &b}) {
      double square = 0;
      for (size_t c = 0; c < block->cols(); ++c) {
        (*block)(i, c) = float(random.normal(c + (block == &b)));  // they share some
        square += double((*block)(i, c)) * double((*block)(i, c));
      }
      for (size_t c = 0; c < block->cols(); ++c)
        (*block)(i, c) = float((*block)(i, c) / std::sqrt(square));
    }
    const float length = float(1 + i % 4);  // which the store has, and the command takes away
    rows.push_back({fmt::format("{}", i), 0, {{}, {}}});
    for (size_t c = 0; c < 3; ++c) rows[i].blocks[0].push_back(length * a(i, c));
    for (size_t c = 0; c < 5; ++c)
      rows[i].blocks[1].push_back(a(i, 0) < 0 ? b(i, c) : length * b(i, c));
  }
  test::write_made_store(folder_ / "pair", rows, {"x"}, {"embedding", "kl"});
  const double expected = test::plain_cka(a, b);
  const Json found = Json::parse(run_fungi("cka " + at("pair") + " --json").out);
  EXPECT_EQ(found["blocks"], Json({"embedding", "kl"}));
  EXPECT_EQ(found["cka"][0][0], 1.0);
  EXPECT_NEAR(found["cka"][0][1], expected, 1e-6);
  EXPECT_NEAR(found["cka"][1][0], expected, 1e-6);
  EXPECT_GT(expected, 0.01);
  const std::string table = run_fungi("cka " + at("pair")).out;
  EXPECT_NE(table.find(fmt::format("{:.3f}", expected)), std::string::npos) << table;
}

TEST_F(EvaluateUser, WhatTakesTheMemoryIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own; use another build";
#endif
  constexpr size_t kColumns = 2500;  // whose products take 50 MB, and their panels as much
  std::vector<test::MadeRow> rows(kColumns);
  for (size_t i = 0; i < kColumns; ++i) {
    rows[i] = {fmt::format("{}", i), 0, {std::vector<float>(kColumns)}};
    rows[i].blocks[0][i] = 1;
  }
  test::write_made_store(folder_ / "square", rows, {"x"});
  // The program and its libraries take 120 MB of addresses, with one thread of OpenBLAS, which
  // waits for ever where it cannot start more.
  const Outcome o =
      run_fungi("cka " + at("square") + " -j 1", "ulimit -v 180000; OPENBLAS_NUM_THREADS=1");
  EXPECT_EQ(o.status, 1) << o.out;
  EXPECT_NE(o.err.find("out of memory"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("fewer blocks (--features)"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("'fungi project'"), std::string::npos) << o.err;
  EXPECT_EQ(o.err.find("model"), std::string::npos) << o.err;
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

TEST_F(EvaluateUser, RetrieveLeavesOutClassesWhoseNameTheDatabaseLacks) {
  const std::vector<float> row{1, 2};
  test::write_made_store(folder_ / "database", {{"1", 0, {row}}, {"2", 1, {row}}}, {"cat", "dog"});
  test::write_made_store(folder_ / "queries",
                         {{"3", 0, {row}}, {"4", 1, {row}}, {"5", 2, {row}}, {"6", -1, {row}}},
                         {"ant", "dog", "bee"});
  const Outcome o = run_fungi("retrieve " + at("database") + " " + at("queries") + " --json");
  ASSERT_EQ(o.status, 0) << o.err;
  const Json json = Json::parse(o.out)[0];
  EXPECT_EQ(json["queries"], 1);
  EXPECT_EQ(json["notes"],
            Json({"2 of 4 queries are of 2 classes without rows in the database: they are left out",
                  "1 of 4 queries have no label: they are left out"}));
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
