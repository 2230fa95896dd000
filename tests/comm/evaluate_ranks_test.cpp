// SPDX-License-Identifier: Apache-2.0
// Evaluations on one to four ranks have the bytes of one process: PCA, neighbours, k-means, linear
// probe, CKA and retrieval; also where ranks are more than there are blocks of rows.
#include <atomic>

#include "fungi/base/random.h"
#include "fungi/comm/bytes.h"
#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/protocol.h"
#include "fungi/pca/covariance.h"
#include "fungi/retrieve/pca_folder.h"
#include "fungi/search/ranks.h"
#include "fungi/store/writer.h"
#include "tests/support/folder.h"
#include "tests/support/ranks.h"

namespace fungi::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClasses = 5, kWidth = 160;

// Rows around the centres of their classes.
void write_store(const fs::path& folder, size_t rows, uint64_t seed) {
  StoreSpec spec;
  spec.pipeline = "embedding+kl", spec.precision = "f32", spec.isa = "generic";
  spec.blocks = {{"embedding", kWidth}, {"kl", kWidth}};
  StoreWriter writer(folder, spec, {.shard_size = 700});
  std::vector<StoreSample> samples;
  for (size_t i = 0; i < rows; ++i)
    samples.push_back({std::to_string(i), int64_t(i * 7 % kClasses)});
  for (const StoreWork& work : writer.plan(samples, {"a", "b", "c", "d", "e"})) {
    StoreRows out;
    for (size_t b = 0; b < 2; ++b) {
      Matrix<float>& block = out.blocks.emplace_back(work.samples.size(), kWidth);
      for (size_t r = 0; r < block.rows(); ++r)
        for (size_t c = 0; c < kWidth; ++c) {
          const size_t i = work.samples[r];
          const double own = RandomStream(seed + b, "row", i).uniform(c);
          const double centre = RandomStream(b, "centre", i * 7 % kClasses).uniform(c);
          block(r, c) = float(own + 0.35 * centre);
        }
    }
    writer.put(work, out);
  }
  writer.finish();
}

struct Stores {
  Stores() {
    write_store(folder / "train", 3300, 11);
    write_store(folder / "test", 333, 22);
    train.emplace(Store::open(folder / "train"));
    test.emplace(Store::open(folder / "test"));
  }
  TemporaryFolder folder;
  std::optional<Store> train, test;
};

const Stores& stores() {
  static const Stores made;
  return made;
}

CombinationOptions combined(Comm* ranks, size_t pca) {
  return {.features = "embedding+kl", .rows = {.pca = pca, .ranks = ranks}};
}

// result(ranks, pool) as bytes: that of one process, and those of all ranks of every number.
void expect_same_on_ranks(const std::function<std::string(Comm*, Pool&)>& result) {
  Pool alone(2);
  const std::string expected = result(nullptr, alone);
  ASSERT_GT(expected.size(), 20u);
  for (const size_t size : {1, 2, 3, 4, 6})
    on_ranks(size, [&](Comm& comm) {
      Pool pool(1);
      EXPECT_TRUE(result(&comm, pool) == expected) << "rank " << comm.rank() << " of " << size;
    });
}

TEST(EvaluateOnRanks, Neighbours) {
  for (const size_t pca : {0, 24})
    expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
      const KnnResult found = evaluate_knn(*stores().train, *stores().test,
                                           {.combinations = combined(ranks, pca), .k = 7}, pool);
      const KnnCombination& one = found.combinations.at(0);
      EXPECT_EQ(one.pca_applied, pca > 0);
      EXPECT_GT(one.score.accuracy, 0.5);
      ByteWriter out;
      out.numbers(one.score.votes.predicted);
      out.number(one.score.accuracy), out.number(one.columns);
      return out.take();
    });
}

// More neighbours than a rank has rows, rows of equal distance, and their numbers and distances.
TEST(EvaluateOnRanks, NeighboursOfEqualDistanceAreThoseOfOneProcess) {
  Matrix<float> rows(2500, 6), queries(40, 6);
  for (size_t i = 0; i < rows.rows(); ++i)
    for (size_t c = 0; c < 6; ++c) rows(i, c) = float((i * 31 + c * c) % 3);
  for (size_t i = 0; i < queries.rows(); ++i)
    for (size_t c = 0; c < 6; ++c) queries(i, c) = float((i * 17 + c) % 4);
  for (const Metric metric : {Metric::euclidean, Metric::cosine})
    for (const size_t k : {1, 50, 1300})
      expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
        Neighbours found;
        if (ranks) {
          const auto [first, last] = own_rows(rows.rows(), *ranks);
          found = knn_on_ranks(rows.view().slice(first, last - first), first, rows.rows(), queries,
                               k, pool, {.metric = metric}, *ranks);
        } else {
          found = knn(rows, queries, k, pool, {.metric = metric});
        }
        ByteWriter out;
        out.matrix<uint32_t>(found.index), out.matrix<double>(found.value);
        return out.take();
      });
}

TEST(EvaluateOnRanks, Clusters) {
  for (const size_t rows_per_cluster : {256, 0})  // a sample of the rows, or all
    for (const size_t restarts : {1, 2})
      expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
        KMeansOptions kmeans;
        kmeans.rows_per_cluster = rows_per_cluster, kmeans.restarts = restarts;
        const KMeansResult found = evaluate_kmeans(
            *stores().train, {.combinations = combined(ranks, 24), .kmeans = kmeans}, pool);
        const ClusteringScore& score = found.combinations.at(0).score;
        EXPECT_EQ(score.kmeans.trained_rows, rows_per_cluster ? 1280u : 3300u);
        ByteWriter out;
        out.matrix<float>(score.kmeans.centres), out.numbers(score.kmeans.assignment);
        out.number(score.kmeans.inertia), out.number(score.kmeans.iterations);
        out.number(score.overlap.accuracy);
        return out.take();
      });
}

TEST(EvaluateOnRanks, LinearProbe) {
  enum Variant { plain, shots, validated, reduced };
  for (const Variant variant : {plain, shots, validated, reduced})
    expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
      LinearProtocol protocol{.combinations = combined(ranks, 24)};
      protocol.probe.lambdas = {1e-3, 1e-2};
      if (variant == shots) protocol.probe.shots = 9;  // fewer rows than columns
      if (variant == reduced) protocol.combinations.rows.reduce = Reduce::sparse;
      const LinearResult found =
          evaluate_linear(*stores().train, *stores().test,
                          variant == validated ? &*stores().test : nullptr, protocol, pool);
      const LinearProbeScore& score = found.combinations.at(0).score;
      EXPECT_GT(score.accuracy, 0.5) << variant;
      EXPECT_TRUE(found.combinations.at(0).reduced);
      ByteWriter out;
      out.matrix<double>(score.model.weights), out.numbers(score.predicted);
      out.number(score.accuracy), out.numbers(score.validation), out.number(score.fitted_rows);
      return out.take();
    });
}

// By products of columns, and, of a store of fewer rows than columns, by those of rows.
TEST(EvaluateOnRanks, SimilarityOfBlocks) {
  const TemporaryFolder folder;
  write_store(folder / "few", 300, 5);
  const Store few = Store::open(folder / "few");
  for (const Store* store : {&*stores().train, &few})
    expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
      constexpr size_t kPart = 40 * 2 * kWidth * sizeof(float);  // eight parts of the few
      const Matrix<double> cka = linear_cka(*store, {"embedding", "kl"}, pool, kPart, ranks);
      EXPECT_GT(cka(0, 1), 0);
      ByteWriter out;
      out.matrix<double>(cka);
      return out.take();
    });
}

// Some rows and some queries alone, with relevant rows and junk on every rank; also equal rows.
TEST(EvaluateOnRanks, Retrieval) {
  const Store &train = *stores().train, &test = *stores().test;
  RankingTask task;
  for (size_t i = 0; i < train.rows(); ++i)
    if (i % 5 != 3) task.rows.database.push_back(i);
  for (size_t i = 0; i < test.rows(); ++i)
    if (i % 4 != 1) task.rows.queries.push_back(i);
  const auto relevance = [&](size_t query, bool hard) {
    Relevance own;
    for (size_t i = 0; i < task.rows.database.size(); ++i)
      if (train.labels()[task.rows.database[i]] == test.labels()[task.rows.queries[query]])
        (i % 9 == 0 ? own.junk : own.positive).push_back(uint32_t(i));
    if (hard) own.positive.resize(query % 7);
    return own;
  };
  task.relevances = {{"easy", [&](size_t query) { return relevance(query, false); }},
                     {"hard", [&](size_t query) { return relevance(query, true); }}};
  for (const size_t pca : {0, 24})
    expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
      const RankingResult found =
          evaluate_ranking(train, test, task, {.combinations = combined(ranks, pca)}, pool);
      const RankingCombination& one = found.combinations.at(0);
      EXPECT_EQ(one.pca_applied, pca > 0);
      ByteWriter out;
      for (const auto& [name, score] : one.scores) {
        out.string(name), out.number(score.map), out.numbers(score.precision);
        out.number(score.queries);
        for (const auto& by : score.by_query) out.number(by ? by->average_precision : -1);
      }
      return out.take();
    });
}

// One run of k-means blocks is all that this database has: most ranks hold nothing.
TEST(EvaluateOnRanks, RanksWithoutRows) {
  const Store& test = *stores().test;
  const RankingTask task = same_class_task(test, test);
  expect_same_on_ranks([&](Comm* ranks, Pool& pool) {
    const RankingResult found =
        evaluate_ranking(test, test, task, {.combinations = combined(ranks, 24)}, pool);
    const KnnResult near =
        evaluate_knn(test, test, {.combinations = combined(ranks, 24), .k = 7}, pool);
    ByteWriter out;
    out.number(found.combinations.at(0).scores.at(0).second.map);
    out.numbers(near.combinations.at(0).score.votes.predicted);
    return out.take();
  });
}

// Each rank reads a share of the rows: no row is read twice for its products, but for the first block.
TEST(EvaluateOnRanks, MomentsOfSharedRows) {
  for (const size_t total : {500, 2304, 2305, 30000}) {
    const auto load = [&](size_t first, size_t count) {
      Matrix<float> rows(count, 200);  // two tiles across
      for (size_t i = 0; i < count; ++i)
        for (size_t c = 0; c < 200; ++c)
          rows(i, c) = float(RandomStream(3, "row", first + i).uniform(c));
      return rows;
    };
    for (const auto products : {Covariance::Products::f32, Covariance::Products::split_bf16}) {
      Pool alone(2);
      Covariance whole(200, products);
      whole.add(load(0, total), alone);
      const Moments expected = whole.finish(alone);
      for (const size_t size : {1, 2, 3, 5}) {
        std::atomic<size_t> read{0};
        on_ranks(size, [&](Comm& comm) {
          Pool pool(1);
          const LoadRun counted = [&](size_t first, size_t count) {
            read += count;
            return load(first, count);
          };
          const Moments found = moments_on_ranks(total, 200, counted, pool, comm, products);
          if (!comm.first()) return;
          EXPECT_TRUE(found.mean == expected.mean);
          EXPECT_TRUE(std::equal(found.scatter.data(), found.scatter.data() + 200 * 200,
                                 expected.scatter.data()))
              << total << " rows on " << size;
        });
        EXPECT_EQ(read, total + std::min<size_t>(total, BlockProducts::kRows));
      }
    }
  }
}

TEST(EvaluateOnRanks, PrincipalComponentsInAFolder) {
  const TemporaryFolder folder;
  Pool alone(2);
  const std::vector<fs::path> from{stores().folder / "train", stores().folder / "test"};
  write_pca_folder(from, folder / "alone", {.dim = 24}, alone);
  on_ranks(3, [&](Comm& comm) {
    Pool pool(1);
    write_pca_folder(from, folder / "ranks", {.dim = 24, .ranks = &comm}, pool);
  });
  EXPECT_TRUE(contents(folder / "alone") == contents(folder / "ranks"));
}

}  // namespace
}  // namespace fungi::test
