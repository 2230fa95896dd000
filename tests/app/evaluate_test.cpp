// SPDX-License-Identifier: Apache-2.0
// retrieve, knn and linear on stores of made-up rows: whom they rank, what their options do, what
// they refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/pca/pca.h"
#include "fungi/store/store.h"
#include "tests/support/command.h"
#include "tests/support/factor_store.h"
#include "tests/support/made_store.h"
#include "tests/support/ranking.h"

namespace fungi {
namespace {

using test::MadeRow;
using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

std::vector<float> random_row(size_t seed, size_t row, size_t width = 8) {
  const RandomStream random(seed, "made row", row);
  std::vector<float> out;
  for (size_t c = 0; c < width; ++c) out.push_back(float(random.normal(c)));
  return out;
}

std::vector<float> at_angle(double degrees) {
  return {float(std::cos(degrees * M_PI / 180)), float(std::sin(degrees * M_PI / 180))};
}

class Evaluate : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::vector<MadeRow>& rows,
             const std::vector<std::string>& classes = {"x", "y", "z"}) const {
    test::write_made_store(folder_ / name, rows, classes);
  }
  Outcome run(const std::string& verb, const std::string& a, const std::string& b,
              const std::string& more = "") const {
    return run_fungi(verb + " " + at(a) + " " + at(b) + " -j 2 " + more);
  }
  Json json(const std::string& verb, const std::string& a, const std::string& b,
            const std::string& more = "") const {
    const Outcome o = run(verb, a, b, more + " --json");
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? Json::parse(o.out) : Json::array({Json::object(), Json::object()});
  }
  void expect_refusal(const Outcome& o, int status, const std::string& part) const {
    EXPECT_EQ(o.status, status) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
    EXPECT_EQ(o.err.find("internal error"), std::string::npos) << o.err;
  }
  test::TemporaryFolder folder_;
};

// Four queries, forty pictures of the list and five strangers, who are copies of queries.
struct Landmarks {
  Landmarks() {
    truth = {{"imlist", Json::array()}, {"qimlist", Json::array()}, {"gnd", Json::array()}};
    for (size_t i = 0; i < 4; ++i) {
      queries.push_back({fmt::format("jpg/query_{}.jpg", i), int64_t(i % 2), {random_row(1, i)}});
      truth["qimlist"].push_back(fmt::format("query_{}", i));
      truth["gnd"].push_back({{"easy", {i, i + 10}}, {"hard", {i + 20}}, {"junk", {i + 30}}});
    }
    for (size_t i = 0; i < 40; ++i) {
      database.push_back({fmt::format("jpg/image_{}.jpg", i), int64_t(i % 3), {random_row(2, i)}});
      truth["imlist"].push_back(fmt::format("image_{}", i));
    }
    all = queries;
    all.insert(all.end(), database.rbegin(), database.rend());
    for (size_t i = 0; i < 5; ++i)
      all.push_back({fmt::format("jpg/stranger_{}.jpg", i), 0, {random_row(1, i % 4)}});
  }
  std::vector<MadeRow> queries, database, all;
  Json truth;
};

TEST_F(Evaluate, ATruthFileRanksItsListAndNothingElse) {
  const Landmarks landmarks;
  write("queries", landmarks.queries);
  write("database", landmarks.database);
  write("all", landmarks.all);
  std::ofstream(folder_ / "gnd.json") << landmarks.truth;
  const std::string truth = "--truth " + at("gnd.json");
  // The PCA, too, knows the list alone.
  for (const std::string pca : {"--pca 0", "--pca 3", "--exact-gradients"}) {
    const Json apart = json("retrieve", "database", "queries", truth + " " + pca),
               together = json("retrieve", "all", "all", truth + " " + pca);
    ASSERT_EQ(apart.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(together[i]["pca_applied"], pca == "--pca 3");
      EXPECT_EQ(together[i]["queries"], 4);
      EXPECT_NEAR(together[i]["map"], apart[i]["map"], 1e-12) << pca;
      EXPECT_EQ(together[i]["precision"], apart[i]["precision"]) << pca;
    }
  }
}

TEST_F(Evaluate, ATruthFileRanksItsListByWholeGradients) {
  constexpr size_t kQueries = 4, kAll = 45, kListed = 36;  // five strangers
  test::write_factor_store(folder_ / "all", kAll, 1);
  Json truth{{"imlist", Json::array()}, {"qimlist", Json::array()}, {"gnd", Json::array()}};
  std::vector<size_t> listed;
  for (size_t i = 40; i-- > kQueries;) {
    listed.push_back(i);
    truth["imlist"].push_back(fmt::format("sample-{}", i));
  }
  ASSERT_EQ(listed.size(), kListed);
  double map = 0;  // by brute force over double-precision rows
  for (uint32_t q = 0; q < kQueries; ++q) {
    truth["qimlist"].push_back(fmt::format("sample-{}", q));
    truth["gnd"].push_back({{"easy", {q, q + 10}}, {"hard", {q + 20}}, {"junk", {q + 30}}});
    const std::vector<double> x = test::limit_row(test::made_sample(1, q), true, {0, 1});
    std::vector<std::pair<double, uint32_t>> order;
    for (uint32_t j = 0; j < kListed; ++j)
      order.push_back(
          {-test::dot(x, test::limit_row(test::made_sample(1, listed[j]), true, {0, 1})), j});
    std::sort(order.begin(), order.end());
    std::vector<uint32_t> ranking;
    for (const auto& [key, row] : order) ranking.push_back(row);
    const auto ranks = test::ranks_in(ranking, {{q, q + 10, q + 20}, {q + 30}});
    map += score_ranks(ranks, {1}).average_precision;
  }
  std::ofstream(folder_ / "gnd.json") << truth;
  const Json found =
      json("retrieve", "all", "all",
           "--exact-gradients --features embedding+kl+dino --truth " + at("gnd.json"));
  EXPECT_EQ(found[0]["queries"], kQueries);
  EXPECT_NEAR(found[0]["map"], map / kQueries, 1e-12);
}

TEST_F(Evaluate, ATruthFileNeedsNoClasses) {
  const Landmarks landmarks;
  write("database", landmarks.database);
  write("queries", landmarks.queries, {"other", "names"});
  std::ofstream(folder_ / "gnd.json") << landmarks.truth;
  std::ofstream(folder_ / "list.jsonl") << R"({"query": "query_1", "positive": ["image_7"]})";
  for (const std::string file : {"gnd.json", "list.jsonl"})
    EXPECT_EQ(run("retrieve", "database", "queries", "--truth " + at(file)).status, 0) << file;
  expect_refusal(run("retrieve", "database", "queries"), 1, "there is no 'other' there");
  std::ofstream(folder_ / "odd.jsonl") << R"({"query": "query_1", "positive": "image_7"})";
  expect_refusal(run("retrieve", "database", "queries", "--truth " + at("odd.jsonl")), 1,
                 "expected a list of names in 'positive', found \"image_7\"");
}

TEST_F(Evaluate, ARowIsNotItsOwnAnswer) {
  // Pairs of classes side by side: the nearest other row is always of another class.
  std::vector<MadeRow> rows;
  for (size_t i = 0; i < 6; ++i)
    rows.push_back({fmt::format("{}.png", i),
                    int64_t(i % 2),
                    {at_angle(40.0 * double(i / 2) + double(i % 2))}});
  write("store", rows);
  write("copy", rows);
  EXPECT_EQ(json("retrieve", "store", "copy")[0]["precision"][0], 1.0) << "another store";
  EXPECT_EQ(json("retrieve", "store", "store")[0]["precision"][0], 0.0);
  EXPECT_EQ(json("retrieve", "store", "store/")[0]["precision"][0], 0.0);
  // In a list, too, unless it says so.
  std::ofstream(folder_ / "list.jsonl") << R"({"query": "0", "positive": ["1"]})";
  EXPECT_EQ(json("retrieve", "store", "store", "--truth " + at("list.jsonl"))[0]["map"], 1.0);
  std::ofstream(folder_ / "own.jsonl") << R"({"query": "0", "positive": ["0", "1"]})";
  EXPECT_EQ(json("retrieve", "store", "store", "--truth " + at("own.jsonl"))[0]["map"], 1.0);
}

TEST_F(Evaluate, AnEmptyDatabaseIsRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write("none", {{"failed", 0, {{nan, 1}}}});  // recorded as a failure: a store without rows
  write("some", {{"a", 0, {at_angle(1)}}, {"b", 0, {at_angle(2)}}});
  for (const std::string more : {"", " --exact-gradients"}) {
    const Outcome o = run("retrieve", "none", "some", more);
    expect_refusal(o, 1, "expected rows to search in");
  }
}

TEST_F(Evaluate, VotesAndMetrics) {
  // One near neighbour of the right class against two farther ones of another.
  write("train", {{"a", 0, {at_angle(1)}}, {"b", 1, {at_angle(10)}}, {"c", 1, {at_angle(11)}}});
  write("test", {{"q", 0, {at_angle(0)}}});
  const auto accuracy = [&](const std::string& more) {
    return json("knn", "train", "test", more)[0]["accuracy"].get<double>();
  };
  EXPECT_EQ(accuracy("-k 3"), 0);
  EXPECT_EQ(accuracy("-k 3 --vote uniform"), 0);
  EXPECT_EQ(accuracy("-k 3 --vote distance"), 1);
  expect_refusal(run("knn", "train", "test", "-k 3 --vote loud"), 2, "--vote");
  // A row of zeros is nearer than one at a right angle, and as similar: then the first row wins.
  write("edges", {{"a", 0, {at_angle(90)}}, {"b", 1, {{0, 0}}}});
  for (const auto& [metric, expected] :
       {std::pair("euclidean", 0.0), std::pair("inner_product", 1.0), std::pair("cosine", 1.0)})
    EXPECT_EQ(json("knn", "edges", "test", std::string("-k 1 --metric ") + metric)[0]["accuracy"],
              expected)
        << metric;
  expect_refusal(run("knn", "train", "test", "-k 1 --metric taxi"), 2, "taxi");
}

TEST_F(Evaluate, ClassesWithoutTrainingRowsAreNamed) {
  std::vector<MadeRow> train, test;
  for (size_t i = 0; i < 12; ++i)
    train.push_back({fmt::format("a{}", i), int64_t(i % 2), {random_row(3, i)}});
  for (size_t i = 0; i < 6; ++i)
    test.push_back({fmt::format("b{}", i), int64_t(i % 3), {random_row(4, i)}});
  write("train", train);
  write("test", test);
  for (const std::string verb : {"knn", "linear"}) {
    const Outcome o = run(verb, "train", "test", verb == "knn" ? "-k 3" : "");
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_NE(o.err.find("2 of 6 test rows are of 1 classes"), std::string::npos) << o.err;
    EXPECT_EQ(run(verb, "train", "train", verb == "knn" ? "-k 3" : "").err, "");
  }
}

TEST_F(Evaluate, FewShotsByEitherSampling) {
  // The first rows of each class lie; later ones tell the truth.
  std::vector<MadeRow> train, test;
  for (size_t i = 0; i < 90; ++i) {
    const double truth = 120.0 * double(i % 3) + 0.1 * double(i);
    train.push_back(
        {fmt::format("{}", i), int64_t(i % 3), {at_angle(i < 6 ? truth + 120 : truth)}});
  }
  for (size_t i = 0; i < 9; ++i)
    test.push_back({fmt::format("t{}", i), int64_t(i % 3), {at_angle(120.0 * double(i % 3))}});
  write("train", train);
  write("test", test);
  const Json first = json("knn", "train", "test", "-k 1 --shots 2"),
             drawn = json("knn", "train", "test", "-k 1 --shots 2 --sampling stratified");
  EXPECT_EQ(first[0]["accuracy"], 0.0);
  EXPECT_GT(drawn[0]["accuracy"], 0.5);
  EXPECT_EQ(first[0]["train_rows"], 6);
  EXPECT_EQ(drawn[0]["train_rows"], 6);
  EXPECT_EQ(drawn[0]["sampling"], "stratified");
  const Outcome table = run("knn", "train", "test", "-k 1 --shots 2 --sampling stratified");
  EXPECT_EQ(table.out.find("per class,"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("6 training rows, a stratified draw"), std::string::npos) << table.out;
  expect_refusal(run("knn", "train", "test", "--sampling stratified"), 2, "--shots");
  expect_refusal(run("knn", "train", "test", "--sampling first --shots 0"), 2, "--shots");
  expect_refusal(run("knn", "train", "test", "--sampling any --shots 2"), 2, "--sampling");
  expect_refusal(run("knn", "train", "test", "--exact-gradients --pca 3 --shots 2"), 2, "--pca");
}

// SPEC 1.7: fitted on the training rows that are used and on no others, not normalised again.
TEST_F(Evaluate, NeighboursAfterAPca) {
  std::vector<MadeRow> train, test;
  for (size_t i = 0; i < 60; ++i)
    (i < 40 ? train : test).push_back({fmt::format("{}", i), int64_t(i % 3), {random_row(31, i)}});
  write("train", train);
  write("test", test);
  Pool pool(2);
  const FeatureSet x = Store::open(folder_ / "train").load(),
                   y = Store::open(folder_ / "test").load();
  for (const size_t shots : {0u, 4u}) {
    std::vector<size_t> rows(40);
    std::iota(rows.begin(), rows.end(), size_t{0});
    if (shots) rows = first_per_class(x.labels, shots);
    const auto score = [&](View<const float> fitted, bool again) {
      const Pca pca = Pca::fit(fitted, 3, pool);
      Matrix<float> a = pca.transform(gather(x.features, rows), pool),
                    b = pca.transform(y.features, pool);
      for (Matrix<float>* m : {&a, &b})
        for (size_t i = 0; again && i < m->rows(); ++i) {
          const double norm = std::hypot((*m)(i, 0), (*m)(i, 1), (*m)(i, 2));
          for (size_t c = 0; c < 3; ++c) (*m)(i, c) = float((*m)(i, c) / norm);
        }
      return classify(a, gather(x.labels, rows), b, y.labels, {.k = 3}, pool).accuracy;
    };
    const Matrix<float> used = gather(x.features, rows);
    const double expected = score(used, false);
    const Json found =
        json("knn", "train", "test", fmt::format("-k 3 --pca 3 --shots {}", shots))[0];
    EXPECT_EQ(found["accuracy"], expected) << shots;
    EXPECT_EQ(found["columns"], 3);
    EXPECT_EQ(found["pca_applied"], true);
    EXPECT_NE(score(used, true), expected) << "these rows would show a second normalisation";
    EXPECT_NE(score(y.features, false), expected) << "and a PCA of the test rows";
    EXPECT_EQ(score(x.features, false) == expected, shots == 0) << "and one of all training rows";
  }
  const Json few = json("knn", "train", "test", "-k 3 --pca 3 --shots 1")[0];
  EXPECT_EQ(few["pca_applied"], false) << "three rows have no three directions";
  EXPECT_EQ(few["columns"], 8);
}

TEST_F(Evaluate, LinearProbesByTheirOptions) {
  std::vector<MadeRow> train, test;
  for (size_t i = 0; i < 60; ++i)
    train.push_back({fmt::format("{}", i), int64_t(i % 3), {random_row(3, i, 2)}});
  for (size_t i = 0; i < 60; ++i) {
    for (size_t c = 0; c < 2; ++c) train[i].blocks[0][c] += 3 * at_angle(120.0 * double(i % 3))[c];
    test.push_back({fmt::format("t{}", i), int64_t(i % 3), {at_angle(120.0 * double(i % 3))}});
  }
  write("train", train);
  write("test", test);
  const Json plain = json("linear", "train", "test")[0];
  EXPECT_EQ(plain["accuracy"], 1.0);
  EXPECT_EQ(plain["validation"].size(), 5u);
  EXPECT_EQ(plain["converged"], true);
  const Json given =
      json("linear", "train", "test", "--lambda 0.25 0.5 --validation " + at("test"))[0];
  EXPECT_EQ(given["validation"], Json::array({1.0, 1.0})) << "by the store given";
  EXPECT_EQ(given["lambda"], 0.25) << "the first of the best";
  EXPECT_EQ(json("linear", "train", "test", "--shots 3")[0]["shots"], 3);
  expect_refusal(run("linear", "train", "test", "--shots 40"), 1, "shots");
  expect_refusal(run("linear", "train", "test", "--lambda 0"), 2, "positive number");
  expect_refusal(run("linear", "train", "test", "--validation " + at("none")), 1, "none");
  EXPECT_NE(run_fungi("linear --help").out.find("5e-06"), std::string::npos)
      << "the default penalties";

  // A penalty that proves nothing.
  const Outcome endless = run("linear", "train", "test", "--lambda 1e-200 --json");
  ASSERT_EQ(endless.status, 0) << endless.err;
  EXPECT_EQ(Json::parse(endless.out)[0]["converged"], false);
  EXPECT_NE(endless.err.find("did not converge"), std::string::npos) << endless.err;

  // Five classes of two rows: a fifth of them is too few to choose a penalty.
  std::vector<MadeRow> few(train.begin(), train.begin() + 10);
  for (size_t i = 0; i < 10; ++i) few[i].label = int64_t(i % 5);
  write("few", few, {"x", "y", "z", "v", "w"});
  expect_refusal(run("linear", "few", "test"), 1, "--validation STORE");
  EXPECT_EQ(run("linear", "few", "test", "--validation " + at("test")).status, 0);
}

TEST_F(Evaluate, RowsThatAreNotFiniteAreNamed) {
  std::vector<MadeRow> rows;
  for (size_t i = 0; i < 30; ++i)
    rows.push_back({fmt::format("{}", i), int64_t(i % 3), {random_row(5, i)}});
  write("good", rows);
  write("bad", rows);
  Matrix<float> values = NpyFile::open(folder_ / "bad/embedding-00000.npy").read();
  values(11, 3) = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder_ / "bad/embedding-00000.npy", npy_array(values));
  const std::string part = "bad/embedding-00000.npy: the row of '11' holds a value that is not";
  expect_refusal(run("linear", "good", "bad"), 1, part);
  expect_refusal(run("linear", "good", "good", "--validation " + at("bad")), 1, part);
  for (const std::string verb : {"knn", "retrieve"})
    for (const std::string more : {"", " --exact-gradients"}) {
      expect_refusal(run(verb, "good", "bad", more), 1, part);
      expect_refusal(run(verb, "bad", "good", more), 1, part);
    }
}

TEST_F(Evaluate, OptionsThatWouldBeIgnoredAreRefused) {
  struct Case {
    const char *words, *part;
  };
  for (const auto& [words, part] :
       {Case{"index s -o i --kind ivf --links 8", "--links"},
        {"index s -o i --kind ivf --build-effort 8", "--build-effort"},
        {"index s -o i --kind ivf --effort 8", "--effort"},
        {"index s -o i --kind hnsw --lists 8", "--lists"},
        {"index s -o i --probes 8", "--probes"},
        {"index s -o i --kind exact --probes 8", "--kind exact"},
        {"index s -o i --kind exact --links 8", "--kind exact"},
        {"export s f.npz --split test", "--split"},
        {"export s f.npz --layer-name x", "--layer-name"},
        {"project s -o t --given m.npz", "--projection matrix"},
        {"bench -m vit_tiny_patch16_224 --objectives kl dino --batch 4", "--batch"},
        {"extract d -m m -o s --objectives none --projection sign", "--projection"},
        {"extract d -m m -o s --objectives none --projection-dim 8", "--projection-dim"},
        {"extract d -m m -o s --objectives none --layer blocks.0.attn.proj", "--layer"},
        {"extract d -m m -o s --objectives none --keep-factors", "--keep-factors"},
        {"extract d -m m -o s --objectives kl dino kl:width=8", "'kl' is given twice"},
        {"bench -m vit_tiny_patch16_224 --objectives kl kl", "'kl' is given twice"},
        {"extract d -m m -o s --projection matrix", "--given"},
        {"project s -o t --projection matrix", "--given"},
        {"cka s -j 5000", "--threads"},
        {"report s t -j 5000", "--threads"},
        {"report s t -k 0", "at least 1"}})
    expect_refusal(run_fungi(words), 2, part);

  std::vector<MadeRow> rows;
  for (size_t i = 0; i < 20; ++i) rows.push_back({fmt::format("{}", i), 0, {random_row(6, i)}});
  write("store", rows);
  for (const std::string kind : {"exact", "ivf", "hnsw"}) {
    ASSERT_EQ(run_fungi("index " + at("store") + " --kind " + kind + " -o " + at(kind)).status, 0);
    for (const std::string option : {"--effort", "--probes"}) {
      const Outcome o = run_fungi("search " + at(kind) + " --row 3 " + option + " 30");
      if ((kind == "ivf" && option == "--probes") || (kind == "hnsw" && option == "--effort"))
        EXPECT_EQ(o.status, 0) << o.err;
      else
        expect_refusal(o, 1, option + " is a setting of");
    }
  }
}

}  // namespace
}  // namespace fungi
