// SPDX-License-Identifier: Apache-2.0
// Indices of stores, and the recall that is printed, against a plain search in memory.
#include "fungi/retrieve/feature_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fungi/checkpoint/npy.h"
#include "fungi/search/knn.h"
#include "fungi/store/files.h"
#include "tests/store/fixture.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::Extraction;
using test::Folder;

// Ids are file names, and those may hold any byte.
std::vector<StoreSample> odd_samples(size_t n) {
  std::vector<StoreSample> samples;
  for (size_t i = 0; i < n; ++i)
    samples.push_back({"dir \"é\"/\xff" + std::to_string(i), i % 4 ? int64_t(i % 3) : -1, ""});
  return samples;
}

Extraction without_failures() {
  Extraction extraction;
  extraction.fails = [](const std::string&) { return false; };
  return extraction;
}

bool same(View<const float> x, View<const float> y) {
  return x.rows == y.rows && x.cols == y.cols &&
         std::equal(x.data, x.data + x.rows * x.cols, y.data);
}

TEST(FeatureIndex, HoldsVectorsIdsLabelsAndStateOfTheStore) {
  const Folder folder;
  without_failures()(folder / "store", odd_samples(50));
  const Store store = Store::open(folder / "store");
  Pool pool(2);
  for (IndexKind kind :
       {IndexKind::hnsw, IndexKind::ivf, IndexKind::exact})  // each replaces the one before
    for (size_t dim : {size_t{4}, size_t{0}}) {
      SCOPED_TRACE(std::string(to_string(kind)) + " " + std::to_string(dim));
      FeatureIndex::build(store, {.features = "kl+embedding", .pca = dim, .index = {.kind = kind}},
                          pool)
          .save(folder / "index");
      const FeatureIndex opened = FeatureIndex::open(folder / "index");
      FeatureSet set = store.load("kl+embedding");
      if (dim) set.features = Pca::fit(set.features, dim, pool).transform(set.features, pool);
      ASSERT_EQ(opened.index().rows(), 50u);
      EXPECT_EQ(opened.reduction().features(), "kl+embedding");
      for (size_t i = 0; i < 50; ++i) {
        EXPECT_TRUE(same(opened.index().row(i), set.features.view().slice(i, 1)));
        EXPECT_EQ(opened.id(i), store.ids()[i]);
        EXPECT_EQ(opened.label(i), store.labels()[i]);
        EXPECT_EQ(opened.class_name(i), store.class_name(i));
        EXPECT_EQ(opened.find(store.ids()[i]), i);
      }
      EXPECT_FALSE(opened.find("nobody"));
      EXPECT_THROW(opened.index().row(50), Error);
      ASSERT_EQ(opened.record().state.size(), 1u);
      EXPECT_TRUE(same(opened.record().state[0].values, store.state("kl-head")));
      EXPECT_EQ(fs::exists(folder / "index/pca.npz"), dim > 0);
      EXPECT_EQ(fs::exists(folder / "index/links.npy"), kind == IndexKind::hnsw)
          << "nothing stale stays";
    }
}

TEST(FeatureIndex, DamageIsSeen) {
  const Folder folder;
  without_failures()(folder / "store", odd_samples(20));
  const Store store = Store::open(folder / "store");
  Pool pool(1);
  const FeatureIndex built = FeatureIndex::build(store, {.pca = 3}, pool);
  const auto damaged = [&](const char* part, const std::function<void()>& damage) {
    fs::remove_all(folder / "index");
    built.save(folder / "index");
    damage();
    EXPECT_ERROR(part, FeatureIndex::open(folder / "index").id(1));
  };
  damaged("index.json", [&] { fs::remove(folder / "index/index.json"); });
  damaged("features.json", [&] { test::write_file(folder / "index/features.json", "[]"); });
  damaged("no block 'x'", [&] {
    test::write_file(folder / "index/features.json",
                     R"({"format": "fungi vectors", "version": 1, "features": "x", "pca": true})");
  });
  damaged("version", [&] {
    test::write_file(folder / "index/features.json",
                     R"({"format": "fungi vectors", "version": 2})");
  });
  damaged("pca.npz", [&] { fs::remove(folder / "index/pca.npz"); });
  damaged("PCA of 5", [&] {
    test::write_file(
        folder / "index/features.json",
        R"({"format": "fungi vectors", "version": 1, "features": "embedding", "pca": true})");
  });
  damaged("kl-head",
          [&] { test::write_file(folder / "index/state/kl-head.npy", "something else"); });
  damaged("labels.npy",
          [&] { write_npy(folder / "index/labels.npy", npy_array(std::vector<int64_t>(19))); });
  damaged("ids.npy",
          [&] { write_npy(folder / "index/ids.npy", npy_array(std::vector<uint8_t>(3))); });
  fs::create_directories(folder / "mine");
  test::write_file(folder / "mine/letter.txt", "dear");
  EXPECT_ERROR("other files", built.save(folder / "mine"));
  EXPECT_EQ(test::read_file(folder / "mine/letter.txt"), "dear");
}

TEST(FeatureIndex, ReplacesWhatABuildLeftAndNothingElse) {
  const Folder folder;
  without_failures()(folder / "store", odd_samples(20));
  const Store store = Store::open(folder / "store");
  Pool pool(1);
  const FeatureIndex built = FeatureIndex::build(store, {.pca = 3}, pool);
  built.save(folder / "whole");
  EXPECT_FALSE(fs::exists(folder / "whole/unfinished"));
  // What a build that was killed at some moment left: the mark, and files from none to all but the
  // last.
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder / "whole"))
    if (entry.is_regular_file() && entry.path().filename() != "index.json")
      files.push_back(entry.path().filename());
  for (size_t left = 0; left <= files.size(); ++left) {
    const fs::path place = folder / ("killed" + std::to_string(left));
    fs::create_directories(place);
    test::write_file(place / "unfinished", "");
    for (size_t i = 0; i < left; ++i) fs::copy_file(folder / "whole" / files[i], place / files[i]);
    if (left < files.size()) test::write_file(place / (files[left] + ".tmp"), "half");
    if (left == 0) test::write_file(place / "pca.npz.new", "waiting for its name");
    EXPECT_ERROR("", FeatureIndex::open(place));
    built.save(place);
    EXPECT_EQ(FeatureIndex::open(place).id(3), store.ids()[3]);
    EXPECT_EQ(test::contents(place), test::contents(folder / "whole"));
  }
  // One that was killed while it replaced another has cost that one nothing yet.
  const auto whole = test::contents(folder / "whole");
  fs::create_directories(folder / "whole/new/state");
  test::write_file(folder / "whole/unfinished", "");
  test::write_file(folder / "whole/new/links.npy.tmp", "half");
  test::write_file(folder / "whole/new/state/kl-head.npy", "another");
  EXPECT_EQ(FeatureIndex::open(folder / "whole").id(3), store.ids()[3]);
  test::write_file(folder / "whole/new/letter.txt", "mine");
  EXPECT_ERROR("new/letter.txt", built.save(folder / "whole"));
  fs::remove(folder / "whole/new/letter.txt");
  built.save(folder / "whole");
  EXPECT_EQ(test::contents(folder / "whole"), whole);
  // A PCA looks much like the beginning of an index, but is something to keep.
  built.reduction().save(folder / "pca");
  EXPECT_ERROR("choose another folder", built.save(folder / "pca"));
  test::write_file(folder / "whole/letter.txt", "mine");
  EXPECT_ERROR("letter.txt", built.save(folder / "whole"));
  EXPECT_EQ(FeatureIndex::open(folder / "whole").id(3), store.ids()[3])
      << "a refused folder stays as it is";
  // Another program's index.json is no index of ours, and not all in our folders is.
  fs::create_directories(folder / "novel");
  test::write_file(folder / "novel/unfinished", "Chapter 1");
  EXPECT_ERROR("unfinished", FeatureIndex::require_can_save(folder / "novel"));
  fs::create_directories(folder / "site/state");
  test::write_file(folder / "site/index.json", "{\"pages\": 3}");
  EXPECT_ERROR("index.json", FeatureIndex::require_can_save(folder / "site"));
  built.save(folder / "noted");
  test::write_file(folder / "noted/state/thesis.txt", "mine");
  EXPECT_ERROR("state/thesis.txt", built.save(folder / "noted"));
  EXPECT_EQ(test::read_file(folder / "noted/state/thesis.txt"), "mine");
  const fungi::store::Lock other(folder / "killed0/unfinished");
  EXPECT_ERROR("another run", built.save(folder / "killed0"));
}

TEST(FeatureIndex, FindsTheFirstRowOfAnIdFromAnyThread) {
  const Folder folder;
  without_failures()(folder / "store", odd_samples(300));
  Pool pool(4);
  FeatureIndex::build(Store::open(folder / "store"), {}, pool).save(folder / "index");
  const FeatureIndex index = FeatureIndex::open(folder / "index");
  pool.parallel_for(1200, 1, [&](size_t i, size_t, unsigned) {
    ASSERT_EQ(index.find(index.id(i % 300)), i % 300);
    ASSERT_FALSE(index.find(index.id(i % 300) + "?"));
  });
  // Two rows of one name: damage that a search can live with.
  std::vector<int64_t> none(300, 0);
  write_npy(folder / "index/id_ends.npy", npy_array(none));
  const FeatureIndex nameless = FeatureIndex::open(folder / "index");
  EXPECT_EQ(nameless.find(""), 0u);
  none[7] = 1 << 30;  // each call says so
  write_npy(folder / "index/id_ends.npy", npy_array(none));
  const FeatureIndex damaged = FeatureIndex::open(folder / "index");
  EXPECT_ERROR("ascending ends", damaged.find("x"));
  EXPECT_ERROR("ascending ends", damaged.find("x"));
}

TEST(FeatureIndex, RecallIsOverSoManyRowsAtEqualDistances) {
  const Folder folder;
  without_failures()(folder / "store", odd_samples(600));
  const Store store = Store::open(folder / "store");
  Pool pool(2);
  const FeatureIndex index =
      FeatureIndex::build(store, {.index = {.kind = IndexKind::ivf, .lists = 40}}, pool);
  const Matrix<float> rows = store.load().features;
  const SearchOptions poor{.probes = 1};
  std::set<double> shares;
  for (const size_t sample : {7u, 250u, 600u, 10000u}) {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < std::min<size_t>(sample, 600); ++i)
      chosen.push_back(i * 600 / std::min<size_t>(sample, 600));
    const double share = index.recall(5, sample, pool, poor);
    EXPECT_EQ(share, recall_of_rows(index.index(), rows, chosen, 5, pool, poor)) << sample;
    EXPECT_LT(share, 1);
    shares.insert(share);
  }
  EXPECT_EQ(shares.size(), 3u) << "each sample has its own share, and 600 rows are all there are";
}

}  // namespace
}  // namespace fungi
