// SPDX-License-Identifier: Apache-2.0
// Retrieval against SPEC 7.6 and the published protocol, and its files.
#include "fungi/evaluate/retrieval.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>

#include "fungi/base/random.h"
#include "fungi/evaluate/ground_truth.h"
#include "fungi/evaluate/labels.h"
#include "tests/evaluate/golden.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/ranking.h"
#include "tests/support/true_key.h"

namespace fungi {
namespace {

const std::vector<size_t> kCuts{1, 5, 10};

TEST(Retrieval, vectors_of_the_specification) {
  Pool pool(1);
  const std::vector<uint32_t> ranking{7, 2, 9, 4, 0, 1, 3, 5, 6, 8};
  const FillKeys fill = [&](size_t, View<double> keys) {
    for (size_t q = 0; q < keys.rows; ++q)
      for (size_t rank = 0; rank < ranking.size(); ++rank) keys(q, ranking[rank]) = double(rank);
  };
  const std::vector<Relevance> relevance{{{2, 4, 5}, {7, 1}}, {{5}, {7, 1, 2, 4}}};
  const RetrievalOptions options{.precision_at = kCuts};
  const auto scores =
      evaluate_retrieval(ranking.size(), 2, fill, relevance, options, pool).by_query;
  EXPECT_NEAR(scores[0]->average_precision, 0.6777777778, 5e-11);
  EXPECT_EQ(scores[0]->precision, (std::vector<double>{1, 0.4, 0.5}));
  EXPECT_NEAR(scores[1]->average_precision, 0.125, 1e-15);
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
}

TEST(Retrieval, the_database_of_a_revisited_set_is_its_list_and_nothing_else) {
  Pool pool(1);
  const Matrix<float> database = golden_matrix("retrieval_database"),
                      queries = golden_matrix("retrieval_queries");
  const RevisitedTruth truth = read_revisited(golden_path("gnd.json"));
  // One store of the queries, the database backwards and a stranger that is near to all.
  std::vector<std::string> ids = truth.queries;
  for (size_t i = 120; i-- > 0;) ids.push_back("some/folder/" + truth.database[i] + ".jpg");
  ids.push_back("stranger.jpg");
  const RevisitedRows rows = rows_of(truth, ids, ids, "list");
  ASSERT_EQ(rows.database.size(), 120u);
  ASSERT_EQ(rows.queries.size(), 15u);
  for (size_t i = 0; i < 120; ++i) EXPECT_EQ(rows.database[i], 134 - i);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(rows.queries[i], i);
  Matrix<float> store(136, 6);
  for (size_t i = 0; i < 15; ++i) std::copy_n(queries.row(i), 6, store.row(i));
  for (size_t i = 0; i < 120; ++i) std::copy_n(database.row(i), 6, store.row(134 - i));
  const RetrievalScore score =
      evaluate_retrieval(gather(store, rows.database), gather(store, rows.queries),
                         relevance_of(truth, Difficulty::medium), {}, pool);
  EXPECT_NEAR(score.map, golden_json("retrieval")["medium"]["map"].get<double>(), 1e-12);
  std::vector<std::string> twice = ids;
  twice[0] = "elsewhere";  // "query_00" and "query_01.jpg" would mean one row
  RevisitedTruth odd = truth;
  odd.queries[0] = "query_01.jpg";
  EXPECT_THROW(rows_of(odd, ids, ids, "list"), Error);
  EXPECT_THROW(rows_of(truth, twice, ids, "list"), Error);
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
  EXPECT_THROW(score_ranks({0, 3}, {5, 0}), Error);
  const FillKeys none = [](size_t, View<double>) {};
  EXPECT_THROW(evaluate_retrieval(0, 1, none, std::vector<Relevance>(1), {}, pool), Error);
  EXPECT_THROW(evaluate_retrieval(3, 1, none, std::vector<Relevance>(2), {}, pool), Error);
}

TEST(Retrieval, ranks_by_the_metric_asked_for) {
  Pool pool(2);
  const size_t n = 80, width = 6;
  const RandomStream random(5, "retrieval");
  Matrix<float> rows(n, width), queries(10, width);
  for (size_t i = 0; i < n; ++i)  // of all lengths: rows of one length have one order
    for (size_t c = 0; c < width; ++c)
      rows(i, c) = float(double(1 + i % 5) * random.normal(i * width + c));
  for (size_t i = 0; i < 10 * width; ++i) queries.data()[i] = float(random.normal(10000 + i));
  std::vector<Relevance> relevance(10);
  for (uint32_t q = 0; q < 10; ++q) relevance[q] = {{q, q + 20, q + 41}, {q + 60}};
  std::set<double> maps;
  for (Metric metric : {Metric::inner_product, Metric::cosine, Metric::euclidean}) {
    const RetrievalScore score =
        evaluate_retrieval(rows, queries, relevance, {.metric = metric}, pool);
    maps.insert(score.map);
    for (size_t q = 0; q < 10; ++q) {
      std::vector<std::pair<long double, uint32_t>> order;
      for (uint32_t j = 0; j < n; ++j)
        order.emplace_back(test::true_key(metric, width, queries.row(q), rows.row(j)), j);
      std::sort(order.begin(), order.end());
      std::vector<uint32_t> ranking;
      for (const auto& [key, row] : order) ranking.push_back(row);
      EXPECT_NEAR(score.by_query[q]->average_precision,
                  score_ranks(test::ranks_in(ranking, relevance[q]), {1}).average_precision, 1e-14)
          << to_string(metric) << q;
    }
  }
  EXPECT_EQ(maps.size(), 3u);
}

TEST(Retrieval, keys_do_not_depend_on_blocks) {  // more rows than are compared at once
  Pool pool(2);
  const size_t n = 300, width = 5;
  const RandomStream random(4, "retrieval");
  Matrix<float> rows(n, width);
  for (size_t i = 0; i < n * width; ++i) rows.data()[i] = float(random.normal(i));
  std::vector<Relevance> relevance(40);
  for (size_t q = 0; q < 40; ++q) relevance[q].positive = {uint32_t(q + 7), uint32_t(q + 250)};
  const RetrievalScore score =
      evaluate_retrieval(rows, rows.view().slice(0, 40), relevance, {}, pool);
  for (size_t q = 0; q < 40; ++q) {
    std::vector<search::Best> order;
    for (size_t j = 0; j < n; ++j)
      order.push_back(
          {search::ExactKey(Metric::inner_product, width)(rows.row(q), rows.row(j)), uint32_t(j)});
    std::sort(order.begin(), order.end());
    std::vector<uint32_t> ranking;
    for (const search::Best& best : order) ranking.push_back(best.row);
    EXPECT_EQ(score.by_query[q]->average_precision,
              score_ranks(test::ranks_in(ranking, relevance[q]), kCuts).average_precision);
  }
}

TEST(GroundTruth, refuses_broken_files) {
  EXPECT_THROW(read_revisited(golden_path("nothing.pkl")), Error);
  EXPECT_NE(test::error_of([] { read_revisited(golden_path("gnd_numpy.pkl")); }).find(".tolist()"),
            std::string::npos);
  const test::TemporaryFolder folder;
  const auto path = folder / "truth";
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
        "{\"imlist\": \"x\", \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [], \"hard\": [], "
        "\"junk\": []}]}",
        "{\"imlist\": [], \"qimlist\": [], \"gnd\": []}",
        "{\"imlist\": [1], \"qimlist\": [\"a\"], \"gnd\": [{\"easy\": [], \"hard\": [], \"junk\": "
        "[]}]}"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_revisited(path), Error) << text;
  }
  for (const char* text :
       {"", "\n\n", "[]", "{\"query\": 3, \"positive\": []}", "{\"query\": \"a\"}",
        "{\"query\": \"a\", \"positive\": [1]}", "{\"query\": \"a\", \"positive\": \"x.png\"}",
        "{\"query\": \"a\", \"positive\": {\"b\": \"x.png\"}}",
        "{\"query\": \"a\", \"positive\": null}",
        "{\"query\": \"a\", \"positive\": [], \"junk\": null}",
        "{\"query\": \"a\", \"positive\": [], \"junk\": \"x.png\"}"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_relevance_list(path), Error) << text;
  }
  std::ofstream(path) << "{\"query\": \"a\", \"positive\": [\"x\"]}\n"
                         "{\"query\": \"b\", \"positive\": [\"x\"]}\n"
                         "{\"query\": \"a\", \"positive\": [\"y\"]}\n";
  const std::string twice = test::error_of([&] { read_relevance_list(path); });
  EXPECT_NE(twice.find("'a' stands in line 1"), std::string::npos) << twice;
  EXPECT_NE(twice.find(":3"), std::string::npos) << twice;
  EXPECT_ERROR("'y' of the query 'a' is both",
               resolve({{"a"}, {{"x", "y"}}, {{"y"}}}, {"a"}, {"x", "y"}, "list"));
  const RevisitedTruth odd{{"x", "y"}, {"q"}, {{{0}, {1}, {1}}}};
  EXPECT_ERROR("'y' of the query 'q' is both", relevance_of(odd, Difficulty::medium));
  EXPECT_NO_THROW(relevance_of(odd, Difficulty::easy));
  EXPECT_THROW(resolve({{"a", "a.png"}, {{"x"}, {"x"}}, {{}, {}}}, {"a"}, {"x"}, ""), Error);
}

TEST(GroundTruth, shared_lists_of_a_pickle_are_counted) {
  // {'imlist': ['a'], 'qimlist': ['b'], 'gnd': c} with c = n times b, b = n times a, a = n numbers.
  const test::TemporaryFolder folder;
  const auto path = folder / "truth";
  const auto write = [&](size_t n) {
    const auto repeat = [&](const std::string& item) {
      std::string out = "](";
      for (size_t i = 0; i < n; ++i) out += item;
      return out + "e";
    };
    const auto word = [](const std::string& text) {
      return std::string("X") + char(text.size()) + std::string(3, '\0') + text;
    };
    std::ofstream(path, std::ios::binary)
        << "\x80\x02" << repeat("K\x01") << std::string("q\0", 2) << "0"
        << repeat(std::string("h\0", 2)) << "q\x01"
        << "0"
        << "}(" << word("imlist") << "](" << word("a") << "e" << word("qimlist") << "]("
        << word("b") << "e" << word("gnd") << repeat("h\x01") << "u.";
  };
  write(2000);  // eight thousand million numbers from twelve kilobytes
  const std::string most = test::error_of([&] { read_revisited(path); });
  EXPECT_NE(most.find("expected at most"), std::string::npos) << most;
  write(5);
  const std::string shape = test::error_of([&] { read_revisited(path); });
  EXPECT_NE(shape.find("record 0 is none"), std::string::npos) << shape;
}

TEST(GroundTruth, names_with_dots) {
  const std::vector<std::string> ids{"a/img.png", "a/img.001.png", "a/img.002.png"};
  EXPECT_EQ(rows_of({"img.001", "img.jpg", "x/img.002.jpg", "img.002", "img"}, ids, ""),
            (std::vector<uint32_t>{1, 0, 2, 2, 0}));
  EXPECT_EQ(rows_of({"img.003"}, ids, ""), (std::vector<uint32_t>{0})) << "an extension as any";
  EXPECT_EQ(rows_of({"b", "a.jpg"}, {"x/a.png", "b"}, ""), (std::vector<uint32_t>{1, 0}));
  EXPECT_THROW(rows_of({"c"}, {"a", "b"}, ""), Error);
  EXPECT_THROW(rows_of({"a"}, {"x/a.png", "y/a.png"}, ""), Error);
}

}  // namespace
}  // namespace fungi
