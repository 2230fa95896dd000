// SPDX-License-Identifier: Apache-2.0
// Retrieval against SPEC 7.6 and the published protocol, and its files.
#include "fungi/evaluate/retrieval.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "fungi/evaluate/ground_truth.h"
#include "tests/evaluate/golden.h"

namespace fungi {
namespace {

const std::vector<size_t> kCuts{1, 5, 10};

TEST(Retrieval, vectors_of_the_specification) {
  const std::vector<uint32_t> ranking{7, 2, 9, 4, 0, 1, 3, 5, 6, 8};
  const QueryScore a = score_ranking(ranking, {{2, 4, 5}, {7, 1}}, kCuts);
  EXPECT_NEAR(a.average_precision, 0.6777777778, 5e-11);
  EXPECT_EQ(a.precision, (std::vector<double>{1, 0.4, 0.5}));
  EXPECT_NEAR(score_ranking(ranking, {{5}, {7, 1, 2, 4}}, kCuts).average_precision, 0.125, 1e-15);
}

TEST(Retrieval, equals_the_published_protocol_from_every_file) {
  Pool pool(2);
  const auto golden = golden_json("retrieval");
  const Matrix<float> database = golden_matrix("retrieval_database"),
                      queries = golden_matrix("retrieval_queries");
  for (const char* file : {"gnd.json", "gnd_protocol2.pkl", "gnd_protocol4.pkl"}) {
    const RevisitedTruth truth = read_revisited(golden_path(file));
    EXPECT_EQ(truth.database.size(), 120u);
    EXPECT_EQ(truth.database[7], "image_0007");
    EXPECT_EQ(truth.queries[3], "query_03");
    for (auto [difficulty, name] :
         {std::pair{Difficulty::easy, "easy"}, std::pair{Difficulty::medium, "medium"},
          std::pair{Difficulty::hard, "hard"}}) {
      const RetrievalScore score =
          evaluate_retrieval(database, queries, relevance_of(truth, difficulty), {}, pool);
      EXPECT_NEAR(score.map, golden[name]["map"].get<double>(), 1e-14) << file << name;
      for (size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(score.precision[c], golden[name]["precision"][c].get<double>(), 1e-14)
            << file << name;
    }
    const RetrievalScore medium =
        evaluate_retrieval(database, queries, relevance_of(truth, Difficulty::medium), {}, pool);
    size_t with_positives = 0;
    for (const RevisitedRecord& r : truth.records)
      with_positives += !r.easy.empty() || !r.hard.empty();
    EXPECT_LT(with_positives, 15u);
    EXPECT_EQ(medium.queries, with_positives);
    EXPECT_FALSE(medium.by_query[4].has_value());
  }
}

TEST(Retrieval, lists_of_names) {
  Pool pool(1);
  const Matrix<float> database = golden_matrix("retrieval_database"),
                      queries = golden_matrix("retrieval_queries");
  const RelevanceList list = read_relevance_list(golden_path("relevance.jsonl"));
  std::vector<std::string> query_ids, database_ids;
  for (size_t i = 0; i < 15; ++i) query_ids.push_back(list.queries[i]);
  for (size_t i = 0; i < 120; ++i) {
    const std::string number = std::to_string(i);
    database_ids.push_back("some/folder/image_" + std::string(4 - number.size(), '0') + number +
                           ".jpg");
  }
  const RetrievalScore score = evaluate_retrieval(
      database, queries, resolve(list, query_ids, database_ids, "list"), {}, pool);
  EXPECT_NEAR(score.map, golden_json("retrieval")["medium"]["map"].get<double>(), 1e-14);
  // Rows of the store in another order than the file's.
  const RevisitedTruth truth = read_revisited(golden_path("gnd.json"));
  Matrix<float> turned(120, 6);
  std::vector<std::string> turned_ids(120);
  for (size_t i = 0; i < 120; ++i) {
    std::copy_n(database.row(i), 6, turned.row(119 - i));
    turned_ids[119 - i] = database_ids[i];
  }
  const RetrievalScore again = evaluate_retrieval(
      turned, queries, resolve(truth, Difficulty::medium, query_ids, turned_ids, "list"), {}, pool);
  EXPECT_EQ(again.queries, score.queries);
  EXPECT_NEAR(again.map, score.map, 0.1);  // ties fall the other way
}

TEST(Retrieval, same_for_any_thread_count_and_metric) {
  Pool one(1), three(3);
  const Matrix<float> database = golden_matrix("retrieval_database"),
                      queries = golden_matrix("retrieval_queries");
  const auto relevance = relevance_of(read_revisited(golden_path("gnd.json")), Difficulty::medium);
  for (Metric metric : {Metric::inner_product, Metric::cosine, Metric::euclidean}) {
    const RetrievalScore a =
        evaluate_retrieval(database, queries, relevance, {.metric = metric}, one);
    const RetrievalScore b =
        evaluate_retrieval(database, queries, relevance, {.metric = metric}, three);
    EXPECT_EQ(a.map, b.map);
    EXPECT_GT(a.map, 0);
  }
}

TEST(Retrieval, refuses_bad_input) {
  Pool pool(2);
  const Matrix<float> database = golden_matrix("retrieval_database"),
                      queries = golden_matrix("retrieval_queries");
  const auto score = [&](std::vector<Relevance> relevance) {
    return evaluate_retrieval(database, queries.view().slice(0, 2), relevance, {}, pool);
  };
  EXPECT_NO_THROW(score({{{1}, {}}, {}}));
  EXPECT_THROW(score({{{1}, {}}}), Error);
  EXPECT_THROW(score({{}, {}}), Error);
  EXPECT_THROW(score({{{120}, {}}, {}}), Error);
  EXPECT_THROW(score({{{3}, {3}}, {}}), Error);
  Matrix<float> broken = database.copy();
  broken(9, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(evaluate_retrieval(broken, queries.view().slice(0, 1), {{{1}, {}}}, {}, pool),
               Error);
  EXPECT_THROW(evaluate_retrieval(database, queries.view().slice(0, 1), {{{1}, {}}},
                                  {.precision_at = {0}}, pool),
               Error);
}

TEST(GroundTruth, refuses_broken_files) {
  EXPECT_THROW(read_revisited(golden_path("nothing.pkl")), Error);
  EXPECT_THROW(read_revisited(golden_path("gnd_numpy.pkl")), Error);
  const auto path = std::filesystem::path(testing::TempDir()) / "fungi_ground_truth_test";
  for (const char* text :
       {"", "{", "{}", "nonsense", "{\"gnd\": 3}",
        "{\"imlist\": [], \"qimlist\": [\"a\"], \"gnd\": []}",
        "{\"imlist\": [\"x\"], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [0], \"hard\": [], "
        "\"junk\": [1]}]}",
        "{\"imlist\": [\"x\"], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [-1], \"hard\": [], "
        "\"junk\": []}]}",
        "{\"imlist\": [\"x\"], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [0.5], \"hard\": [], "
        "\"junk\": []}]}",
        "{\"imlist\": [\"x\"], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [], \"hard\": []}]}",
        "{\"imlist\": [1], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [], \"hard\": [], \"junk\": "
        "[]}]}"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_revisited(path), Error) << text;
  }
  for (const char* text : {"", "\n\n", "[]", "{\"query\": 3, \"positive\": []}",
                           "{\"query\": \"a\"}", "{\"query\": \"a\", \"positive\": [1]}"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_relevance_list(path), Error) << text;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(rows_of({"b", "a.jpg"}, {"x/a.png", "b"}, ""), (std::vector<uint32_t>{1, 0}));
  EXPECT_THROW(rows_of({"c"}, {"a", "b"}, ""), Error);
  EXPECT_THROW(rows_of({"a"}, {"x/a.png", "y/a.png"}, ""), Error);
}

}  // namespace
}  // namespace fungi
