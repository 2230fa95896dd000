// SPDX-License-Identifier: Apache-2.0
// Parts of a data set, each in a store of its own, become the store of a single run: the same bytes
// for any number of parts, in any order, after kills; and nothing else is joined.
#include "fungi/store/merge.h"

#include <stdexcept>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

constexpr size_t kShard = 4;

StoreOptions part_options(size_t index, size_t count) {
  StoreOptions options{.shard_size = kShard};
  options.part = {index, count};
  return options;
}

std::vector<fs::path> write_parts(const Folder& folder, const std::vector<StoreSample>& samples,
                                  size_t count, const std::string& name = "part") {
  std::vector<fs::path> parts;
  for (size_t k = count; k >= 1; --k) {  // backwards: any order will do
    parts.push_back(folder / (name + std::to_string(k)));
    Extraction run;
    run.backwards = k % 2;
    if (k == 2) run.stop_within = 3;  // a run that was interrupted, and is repeated below
    run(parts.back(), samples, part_options(k, count));
    if (k == 2 && !run.totals.complete) Extraction{}(parts.back(), samples, part_options(k, count));
  }
  return parts;
}

size_t origins_in(const fs::path& folder) {
  const Store store = Store::open(folder);
  return store.manifest().origins.size();
}

TEST(Merge, AnyNumberOfPartsGivesTheBytesOfOneRun) {
  std::vector<StoreSample> samples = example_samples(0, 43);
  for (const size_t archive : {0, 7}) {  // archives of seven samples
    for (size_t i = 0; archive && i < samples.size(); ++i) samples[i].container = i / archive;
    for (const size_t count : {1, 2, 3, 4, 5, 11, 16}) {  // there are 11 shards
      const Folder folder;
      Extraction{}(folder / "whole", samples, {.shard_size = kShard});
      const std::vector<fs::path> parts = write_parts(folder, samples, count);
      const StoreTotals totals = merge_parts(parts, folder / "joined");
      EXPECT_TRUE(totals.complete);
      EXPECT_EQ(totals.rows + totals.failed, samples.size());
      expect_same_bytes(folder / "whole", folder / "joined", std::to_string(count) + " parts");
      for (const fs::path& part : parts) fs::remove_all(part);  // not needed any more
      EXPECT_EQ(Store::open(folder / "joined").rows(), totals.rows);
    }
  }
}

TEST(Merge, AKillAtAnyStepIsMendedByRepeating) {
  const Folder folder;
  const auto samples = example_samples(0, 30);
  Extraction{}(folder / "whole", samples, {.shard_size = kShard});
  const std::vector<fs::path> parts = write_parts(folder, samples, 3);
  size_t steps = 0;
  MergeOptions options;
  options.on_step = [&](const char*) { ++steps; };
  merge_parts(parts, folder / "joined", options);
  ASSERT_GT(steps, 20u);
  for (size_t stop = 0; stop < steps; ++stop) {
    fs::remove_all(folder / "joined");
    size_t step = 0;
    options.on_step = [&](const char*) {
      if (step++ == stop) throw std::runtime_error("killed");
    };
    EXPECT_THROW(merge_parts(parts, folder / "joined", options), std::runtime_error);
    if (fs::exists(folder / "joined/manifest.json")) {
      EXPECT_ERROR("not finished", Store::open(folder / "joined"));
    }
    merge_parts(parts, folder / "joined");
    expect_same_bytes(folder / "whole", folder / "joined", "stopped at " + std::to_string(stop));
  }
}

TEST(Merge, ARunOfTheWholeGoesOnWithWhatComesOfIt) {
  const Folder folder;
  merge_parts(write_parts(folder, example_samples(0, 30), 3), folder / "joined");
  Extraction{}(folder / "whole", example_samples(0, 41), {.shard_size = kShard});
  Extraction more;
  more(folder / "joined", example_samples(0, 41), {.shard_size = kShard});
  EXPECT_EQ(more.computed, 11u);
  expect_same_bytes(folder / "whole", folder / "joined", "grown");
}

TEST(Merge, WhatDoesNotBelongTogetherIsRefused) {
  const Folder folder;
  const auto samples = example_samples(0, 30);
  const std::vector<fs::path> parts = write_parts(folder, samples, 3);  // 3, 2, 1
  const fs::path out = folder / "joined";
  const auto other = [&](const char* name, const std::vector<StoreSample>& given, size_t index,
                         const StoreSpec& spec = example_spec(), size_t count = 3) {
    Extraction{}(folder / name, given, part_options(index, count), spec);
    return folder / name;
  };
  const auto merge = [&](std::vector<fs::path> given, MergeOptions options = {}) {
    return merge_parts(given, out, options);
  };
  EXPECT_ERROR("1 of 3 parts are missing: 2", merge({parts[0], parts[2]}));
  EXPECT_ERROR("given twice", merge({parts[0], parts[1], parts[2], parts[1]}));
  EXPECT_ERROR("two is part 1/2",
               merge({parts[0], parts[1], other("two", samples, 1, example_spec(), 2)}));
  auto longer = example_samples(0, 31), labelled = samples;
  labelled[0].label = 2;
  EXPECT_ERROR("are not those of", merge({parts[0], parts[1], other("longer", longer, 1)}));
  EXPECT_ERROR("are not those of", merge({parts[0], parts[1], other("label", labelled, 1)}));
  StoreSpec spec = example_spec();
  spec.settings = R"({"seed": 2, "kl": {"temperature": 15}})";
  EXPECT_ERROR("seed", merge({parts[0], parts[1], other("seed", samples, 1, spec)}));
  spec = example_spec();
  spec.isa = "avx2";
  const fs::path avx2 = other("isa", samples, 1, spec);
  EXPECT_ERROR("allow_mixed", merge({parts[0], parts[1], avx2}));
  EXPECT_FALSE(fs::exists(out)) << "a refusal leaves nothing behind";
  EXPECT_TRUE(merge({parts[0], parts[1], avx2}, {.allow_mixed = true}).complete);
  EXPECT_EQ(origins_in(out), 2u) << "it is recorded";

  EXPECT_ERROR("would not make", merge({parts[0], parts[1], parts[2]}));
  EXPECT_TRUE(merge({parts[0], parts[1], parts[2]}, {.overwrite = true}).complete);
  EXPECT_EQ(origins_in(out), 1u);
  EXPECT_ERROR("holds no part", merge({parts[0], parts[1], out}));
  EXPECT_ERROR("no manifest.json", merge({parts[0], folder / "nowhere"}));
  write_file(folder / "mine/notes.txt", "mine");
  EXPECT_ERROR("not a feature store", merge_parts(parts, folder / "mine"));

  Extraction half;
  half.stop_after = 1;
  half(folder / "half", samples, part_options(1, 3));
  EXPECT_ERROR("is not finished", merge({parts[0], parts[1], folder / "half"}));
  fs::remove(parts[1] / "kl-00003.npy");
  EXPECT_ERROR("is not whole", merge_parts(parts, folder / "damaged"));
}

TEST(Merge, APartIsNoStoreOfItsOwn) {
  const Folder folder;
  const std::vector<fs::path> parts = write_parts(folder, example_samples(0, 30), 2);
  EXPECT_ERROR("this is part 1/2", Store::open(parts[1]));
  EXPECT_NE(to_text(describe_store(parts[1])).find("part       1/2"), std::string::npos);
  Extraction run;
  EXPECT_ERROR("no part is asked for",
               run(parts[1], example_samples(0, 30), {.shard_size = kShard}));
  EXPECT_ERROR("part 2/2 is asked for", run(parts[1], example_samples(0, 30), part_options(2, 2)));
  EXPECT_ERROR("is not that with which", run(parts[1], example_samples(0, 34), part_options(1, 2)));
  for (const char* bad : {"", "3", "0/4", "5/4", "1/0", "-1/4", "1/4x", "a/b", "1/999999999"})
    EXPECT_ERROR("expected a part", parse_part(bad));
}

TEST(Merge, ArchivesStayWhole) {
  std::vector<StoreSample> samples = example_samples(0, 100);
  EXPECT_EQ(share_shards(samples, 5, 4), (std::vector<size_t>{0, 5, 10, 15, 20}));
  EXPECT_EQ(share_shards(samples, 40, 5), (std::vector<size_t>{0, 0, 1, 1, 2, 3}));
  for (size_t i = 0; i < 100; ++i) samples[i].container = i < 30 ? 0 : i < 60 ? 1 : 2;
  EXPECT_EQ(share_shards(samples, 5, 3), (std::vector<size_t>{0, 6, 12, 20}));
  EXPECT_EQ(share_shards(samples, 5, 2), (std::vector<size_t>{0, 12, 20}));
  EXPECT_EQ(share_shards(samples, 5, 4), (std::vector<size_t>{0, 5, 10, 15, 20}));
}

}  // namespace
}  // namespace fungi::test
