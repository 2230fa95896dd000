// SPDX-License-Identifier: Apache-2.0
// Writing a store: what the files say, in which order, what is refused, and what a repeated or
// changed command does.
#include "fungi/store/writer.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "fungi/checkpoint/npy.h"
#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(StoreWriter, FilesHoldRowsInDatasetOrder) {
  Folder tmp;
  Extraction run;
  const auto samples = example_samples(0, 20);
  run(tmp / "s", samples);
  EXPECT_EQ(run.computed, 20u);
  size_t row = 0;
  std::string failed;
  for (size_t shard = 0; shard < 3; ++shard) {
    const std::string number = "0000" + std::to_string(shard);
    const Matrix<float> kl = NpyFile::open(tmp / "s" / ("kl-" + number + ".npy")).read();
    const std::string lines = read_file(tmp / "s" / ("rows-" + number + ".jsonl"));
    size_t in_shard = 0;
    std::string expected;
    for (size_t i = 8 * shard; i < std::min<size_t>(20, 8 * shard + 8); ++i) {
      const std::string& id = samples[i].id;
      if (always_fails(id)) {
        failed += R"({"id":")" + id + R"(","stage":"decode","reason":"the file ')" + id +
                  "' ends early\"}\n";
        continue;
      }
      expected += R"({"id":")" + id + R"(","label":)" + std::to_string(i % 3) + R"(,"class":")" +
                  kClasses[i % 3] + "\"}\n";
      for (size_t j = 0; j < 3; ++j) EXPECT_EQ(kl(in_shard, j), example_value(id, 1, j));
      ++in_shard;
    }
    EXPECT_EQ(lines, expected);
    EXPECT_EQ(kl.rows(), in_shard);
    row += in_shard;
  }
  EXPECT_EQ(read_file(tmp / "s" / "failed.jsonl"), failed);
  EXPECT_FALSE(failed.empty());
  EXPECT_EQ(run.totals.rows, row);
  EXPECT_EQ(run.totals.failed, 20 - row);
  EXPECT_TRUE(run.totals.complete);

  const auto manifest = nlohmann::json::parse(read_file(tmp / "s" / "manifest.json"));
  EXPECT_EQ(manifest["rows"], row);
  EXPECT_EQ(manifest["complete"], true);
  EXPECT_EQ(manifest["settings"]["kl"]["temperature"], 15);
  EXPECT_EQ(manifest["blocks"][1]["width"], 3);
  EXPECT_EQ(manifest["classes"], nlohmann::json(kClasses));
  EXPECT_EQ(manifest["produced_by"][0]["isa"], "generic");
  EXPECT_EQ(manifest["shards"].size(), 3u);
  EXPECT_EQ(manifest["state"][0]["name"], "kl-head");
}

TEST(StoreWriter, OrderOfFinishingDoesNotMatter) {
  Folder tmp;
  Extraction run;
  run(tmp / "forwards", example_samples(0, 50));
  run.backwards = true;
  run(tmp / "backwards", example_samples(0, 50));
  expect_same_bytes(tmp / "forwards", tmp / "backwards", "backwards");
}

TEST(StoreWriter, RepeatedCommandComputesNothingAndChangesNothing) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 50));
  const auto before = contents(tmp / "s");
  run(tmp / "s", example_samples(0, 50));
  EXPECT_EQ(run.computed, 0u);
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreWriter, GrownDataSetComputesOnlyWhatIsNewAndEqualsAFreshRun) {
  Folder tmp;
  Extraction fresh, grown;
  fresh(tmp / "fresh", example_samples(0, 60));
  grown(tmp / "grown", example_samples(0, 60, 2));  // every second one
  grown(tmp / "grown", example_samples(0, 60));
  EXPECT_EQ(grown.computed, 30u);
  expect_same_bytes(tmp / "fresh", tmp / "grown", "grown in between");
  Extraction longer;
  longer(tmp / "longer", example_samples(0, 32));  // four full shards
  longer(tmp / "longer", example_samples(0, 60));
  EXPECT_EQ(longer.computed, 28u);
  expect_same_bytes(tmp / "fresh", tmp / "longer", "grown at the end");
}

TEST(StoreWriter, ShrunkenDataSetNeedsPrune) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const auto before = contents(tmp / "s");
  EXPECT_ERROR("`prune`", run(tmp / "s", example_samples(0, 60, 2)));
  EXPECT_ERROR("ask for more", run(tmp / "s", example_samples(0, 60, 2),
                                   {.shard_size = 8, .prune_hint = "ask for more"}));
  {
    StoreWriter dry(tmp / "s", example_spec(), {.shard_size = 8, .prune = true, .dry_run = true});
    for (const StoreWork& work : dry.plan(example_samples(0, 60, 2), kClasses))
      EXPECT_TRUE(work.samples.empty()) << "nothing has to be computed";
    size_t odd = 0;
    for (const StoreSample& sample : example_samples(1, 60, 2)) odd += !always_fails(sample.id);
    EXPECT_EQ(dry.dropped(), odd);
  }
  EXPECT_EQ(contents(tmp / "s"), before);
  run(tmp / "s", example_samples(0, 60, 2), {.shard_size = 8, .prune = true});
  EXPECT_EQ(run.computed, 0u);
  Extraction fresh;
  fresh(tmp / "fresh", example_samples(0, 60, 2));
  expect_same_bytes(tmp / "fresh", tmp / "s", "pruned");
}

TEST(StoreWriter, ReorderedDataSetAndOtherShardSizeReuseAllRows) {
  Folder tmp;
  Extraction run, fresh;
  auto samples = example_samples(0, 60);
  run(tmp / "s", samples);
  std::reverse(samples.begin(), samples.end());
  run(tmp / "s", samples, {.shard_size = 11});
  EXPECT_EQ(run.computed, 0u);
  fresh(tmp / "fresh", samples, {.shard_size = 11});
  expect_same_bytes(tmp / "fresh", tmp / "s", "reordered");
}

TEST(StoreWriter, ChangedContentKeyComputesThatSampleAgain) {
  Folder tmp;
  Extraction run;
  auto samples = example_samples(0, 30);
  for (StoreSample& sample : samples) sample.key = "100";
  run(tmp / "s", samples);
  samples[11].key = "101";
  run(tmp / "s", samples);
  EXPECT_EQ(run.computed, 1u);
  Extraction fresh;
  fresh(tmp / "fresh", samples);
  expect_same_bytes(tmp / "fresh", tmp / "s", "one file changed");
}

TEST(StoreWriter,
     WithoutAContentKeyNothingCountsAsChanged) {  // e.g. the files' disk is not mounted today
  Folder tmp;
  Extraction run;
  auto samples = example_samples(0, 30);
  for (StoreSample& sample : samples) sample.key = "100";
  run(tmp / "s", samples);
  const auto before = contents(tmp / "s");
  auto unknown = samples;
  for (StoreSample& sample : unknown) sample.key = "";
  run(tmp / "s", unknown);
  EXPECT_EQ(run.computed, 0u);
  EXPECT_EQ(contents(tmp / "s"), before);
  // Rows that move keep the key they were stored with.
  std::reverse(samples.begin(), samples.end());
  std::reverse(unknown.begin(), unknown.end());
  run(tmp / "s", unknown);
  EXPECT_EQ(run.computed, 0u);
  Extraction fresh;
  fresh(tmp / "fresh", samples);
  expect_same_bytes(tmp / "fresh", tmp / "s", "moved");
}

TEST(StoreWriter, FailuresStayUnlessRetried) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const size_t failed = run.totals.failed;
  ASSERT_GT(failed, 3u);
  run.fails = [](const std::string&) { return false; };
  run(tmp / "s", example_samples(0, 60));
  EXPECT_EQ(run.computed, 0u);
  EXPECT_EQ(run.totals.failed, failed);
  run(tmp / "s", example_samples(0, 60), {.shard_size = 8, .retry_failed = true});
  EXPECT_EQ(run.computed, failed);
  EXPECT_EQ(run.totals.failed, 0u);
  Extraction fresh;
  fresh.fails = run.fails;
  fresh(tmp / "fresh", example_samples(0, 60));
  expect_same_bytes(tmp / "fresh", tmp / "s", "retried");
}

TEST(StoreWriter, AFailureOfAnUnfinishedRetryIsTriedAgain) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const size_t failed = run.totals.failed;
  const StoreOptions retry{.shard_size = 8, .retry_failed = true};
  run.stop_after = 1;  // the retry begins a rewrite, records a failure there, and stops
  run(tmp / "s", example_samples(0, 60), retry);
  ASSERT_FALSE(run.totals.complete);
  run.stop_after = size_t(-1);
  run(tmp / "s", example_samples(0, 60), retry);
  EXPECT_EQ(run.computed, failed);
}

TEST(StoreWriter, AShardMayBeLargerThanAnyDataSet) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const size_t rows = run.totals.rows;
  run(tmp / "s", example_samples(0, 30), {.shard_size = SIZE_MAX});
  EXPECT_EQ(run.computed, 0u);
  EXPECT_EQ(run.totals.rows, rows);
  EXPECT_TRUE(run.totals.complete);
  EXPECT_TRUE(fs::exists(tmp / "s" / "rows-00000.jsonl"));
  EXPECT_FALSE(fs::exists(tmp / "s" / "rows-00001.jsonl"));
}

TEST(StoreWriter, ShardDamagedByAPowerCutIsComputedAgain) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const auto before = contents(tmp / "s");
  fs::resize_file(tmp / "s" / "kl-00002.npy", 40);
  write_file(tmp / "s" / "rows-00004.jsonl", "");
  const fs::path cut = tmp / "s" / "rows-00006.jsonl";
  fs::resize_file(cut, fs::file_size(cut) - 5);  // within a line
  run(tmp / "s", example_samples(0, 60));
  EXPECT_GT(run.computed, 0u);
  EXPECT_LE(run.computed, 24u);
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreWriter, ValuesThatAreNotFiniteAreFailures) {
  Folder tmp;
  for (StoreType type : {StoreType::float32, StoreType::float16}) {
    StoreSpec spec = example_spec();
    spec.type = type;
    const fs::path folder = tmp / to_string(type);
    StoreWriter writer(folder, spec, {.shard_size = 8});
    const auto works = writer.plan(example_samples(0, 4), kClasses);
    StoreRows rows;
    rows.blocks.emplace_back(4, 5);
    rows.blocks.emplace_back(4, 3);
    rows.blocks[1](1, 2) = std::numeric_limits<float>::quiet_NaN();
    rows.blocks[0](2, 4) = std::numeric_limits<float>::infinity();
    rows.blocks[0](3, 0) = 70000;
    const std::vector<StoreFailure> failures = writer.put(works.at(0), rows);
    const StoreTotals totals = writer.finish();
    ASSERT_EQ(failures.size(), totals.failed);
    EXPECT_EQ(failures[0].position, 1u);
    EXPECT_EQ(failures[0].stage, "store");
    EXPECT_EQ(totals.failed, type == StoreType::float16 ? 3u : 2u);
    const std::string failed = read_file(folder / "failed.jsonl");
    EXPECT_NE(failed.find("block 'kl' holds a value that is not finite"), std::string::npos);
    EXPECT_EQ(failed.find("70000, which is too large for float16") != std::string::npos,
              type == StoreType::float16);
  }
}

TEST(StoreWriter, FactorsAreBlocksLikeAnyOther) {
  Folder tmp;
  StoreSpec spec = example_spec();
  spec.blocks.push_back({"kl_factors_b", 40});
  spec.blocks.push_back({"kl_factors_a", 41});
  Extraction run;
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, spec);
  const NpyFile file = NpyFile::open(tmp / "s/kl_factors_a-00001.npy");
  EXPECT_EQ(file.cols(), 41u);
  EXPECT_EQ(Store::open(tmp / "s").load("kl+kl_factors_b").features.cols(), 43u);
}

TEST(StoreWriter, SpecAndDataSetAreChecked) {
  Folder tmp;
  auto writer_with = [&](std::vector<StoreBlock> blocks) {
    StoreSpec spec = example_spec();
    spec.blocks = std::move(blocks);
    StoreWriter writer(tmp / "bad", spec);
  };
  EXPECT_ERROR("at least one block", writer_with({}));
  EXPECT_ERROR("'../kl' cannot be the name", writer_with({{"../kl", 3}}));
  EXPECT_ERROR("'kl-2' cannot be the name", writer_with({{"kl-2", 3}}));
  EXPECT_ERROR("'rows' cannot be the name", writer_with({{"rows", 3}}));
  EXPECT_ERROR("no columns", writer_with({{"kl", 0}}));
  EXPECT_ERROR("two blocks are named 'kl'", writer_with({{"kl", 3}, {"kl", 3}}));
  StoreSpec spec = example_spec();
  spec.settings = "[1]";
  EXPECT_ERROR("expected a JSON object", StoreWriter(tmp / "bad", spec));
  EXPECT_FALSE(fs::exists(tmp / "bad"));

  auto plan = [&](std::vector<StoreSample> samples, size_t shard_size = 8) {
    StoreWriter writer(tmp / "data", example_spec(), {.shard_size = shard_size});
    writer.plan(std::move(samples), kClasses);
  };
  EXPECT_ERROR("holds no samples", plan({}));
  EXPECT_ERROR("two samples have the id 'x'", plan({{"x", 0, ""}, {"x", 1, ""}}));
  EXPECT_ERROR("empty id", plan({{"", 0, ""}}));
  EXPECT_ERROR("the label 3 of sample 'x' has no class", plan({{"x", 3, ""}}));
  EXPECT_ERROR("make the shards larger", plan(std::vector<StoreSample>(100001), 1));
}

TEST(StoreWriter, PutChecksShapesAndOrder) {
  Folder tmp;
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8});
  EXPECT_ERROR("before plan()", writer.finish());
  const auto samples = example_samples(0, 12);
  const auto works = writer.plan(samples, kClasses);
  EXPECT_ERROR("plan() was called twice", writer.plan(samples, kClasses));
  Extraction run;
  StoreRows rows = run.compute(example_spec(), samples, works[0]);
  EXPECT_ERROR("block embedding: expected 4 x 5 values, found 8 x 5", writer.put(works[1], rows));
  rows.blocks.pop_back();
  EXPECT_ERROR("expected 2 blocks, found 1", writer.put(works[0], rows));
  rows = run.compute(example_spec(), samples, works[0]);
  rows.failures.push_back({8, "decode", ""});
  EXPECT_ERROR("a failure names sample 8 of 8", writer.put(works[0], rows));
  rows.failures.pop_back();
  writer.put(works[0], rows);
  EXPECT_ERROR("was put already", writer.put(works[0], rows));
}

TEST(StoreWriter, DryRunPlansButWritesNothing) {
  Folder tmp;
  {
    StoreWriter writer(tmp / "new/deep", example_spec(), {.dry_run = true});
    EXPECT_EQ(writer.plan(example_samples(0, 600), kClasses).size(), 2u);
    EXPECT_EQ(writer.finish().missing, 600u);
  }
  EXPECT_FALSE(fs::exists(tmp / "new"));
  Extraction run;
  run(tmp / "s", example_samples(0, 60, 2));
  const auto before = contents(tmp / "s");
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8, .dry_run = true});
  writer.plan(example_samples(0, 60), kClasses);
  EXPECT_EQ(writer.finish().missing, 30u);
  EXPECT_EQ(contents(tmp / "s"), before);
  StoreWriter again(tmp / "s", example_spec(),
                    {.shard_size = 8, .overwrite = true, .dry_run = true});
  again.plan(example_samples(0, 60), kClasses);
  EXPECT_EQ(again.finish().missing, 60u);
  EXPECT_EQ(contents(tmp / "s"), before);
  write_file(tmp / "file", "x");
  EXPECT_ERROR("expected a folder, found a file",
               StoreWriter(tmp / "file/s", example_spec(), {.dry_run = true}));
}

}  // namespace
}  // namespace fungi::test
