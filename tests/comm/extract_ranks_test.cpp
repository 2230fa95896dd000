// SPDX-License-Identifier: Apache-2.0
// One extraction by several ranks, here threads: the bytes of one process, however the shards are
// shared and wherever they are written; with bad samples, stopped, resumed with another number of
// ranks, grown, and refused where ranks differ.
#include "fungi/feature/extract_ranks.h"

#include <thread>

#include "fungi/store/store.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/ranks.h"

namespace fungi::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShard = 3;

ExtractorOptions options() {
  ExtractorOptions o;
  o.objectives = {"kl", "simclr:width=16,negatives=3"};
  o.projection_rows = 20;
  return o;
}

struct Job {
  size_t pictures = 26;
  bool gather = false, mixed = false, broken = true;
  size_t stop_after = SIZE_MAX;                 // samples that are done
  std::function<void(Comm&)> before = {};       // on each rank, when its model is open
  std::function<std::string(size_t)> isa = {};  // of a rank
  StoreOptions store = {.shard_size = kShard};
};

// As the command line does it.
StoreTotals extract_on(Comm& comm, const fs::path& folder, const Job& job) {
  Pool pool(1);
  Extractor extractor(tiny_backbone(pool), options(), pool);
  const Pictures pictures(job.pictures, job.broken);
  StoreSpec spec = extractor.spec();
  if (job.isa) spec.isa = job.isa(comm.rank());
  share_job({{}, Precision::f32, kShard}, comm);
  std::vector<StoreSample> samples = store_samples(pictures);
  const RankOptions how{.gather = job.gather, .allow_mixed = job.mixed};
  StoreOptions store = job.store;
  store.helpers = require_same_job(spec, samples, pictures.class_names(), kShard, how, comm);
  if (job.before) job.before(comm);
  if (!comm.first()) {
    if (wait_for_work(comm))
      work_for_first_rank(extractor, pictures, spec, std::move(samples), nullptr, comm);
    return {};
  }
  StoreWriter writer(folder, spec, store);
  extractor.settle(writer, pictures);
  const std::vector<StoreWork> plan = writer.plan(samples, pictures.class_names());
  begin_work(true, comm);
  std::atomic<bool> stop{false};
  ExtractRun run;
  run.stop = &stop;
  run.progress = [&](const ExtractProgress& p) { stop = stop || p.saved >= job.stop_after; };
  return run_plan_on_ranks(extractor, pictures, samples, writer, plan, run, how, comm);
}

void extract_with(size_t ranks, const fs::path& folder, const Job& job = {}) {
  on_ranks(ranks, [&](Comm& comm) { extract_on(comm, folder, job); });
}

void expect_same(const fs::path& expected, const fs::path& found, const std::string& what) {
  const auto a = contents(expected), b = contents(found);
  for (const auto& [name, bytes] : a)
    EXPECT_TRUE(b.contains(name) && b.at(name) == bytes) << what << ": " << name;
  for (const auto& [name, bytes] : b) EXPECT_TRUE(a.contains(name)) << what << ": extra " << name;
}

TEST(ExtractOnRanks, TheStoreIsThatOfOneProcess) {
  const TemporaryFolder folder;
  extract_with(1, folder / "whole");
  EXPECT_EQ(Store::open(folder / "whole").failed().size(), 1u);
  for (const size_t ranks : {2, 3, 4, 12})
    for (const bool gather : {false, true}) {
      const fs::path store = folder / ("on" + std::to_string(ranks) + (gather ? "g" : "s"));
      extract_with(ranks, store, {.gather = gather});
      expect_same(folder / "whole", store, store.filename().string());
    }
}

TEST(ExtractOnRanks, StoppedAndRepeatedWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  extract_with(1, folder / "whole");
  for (const bool gather : {false, true})
    for (const size_t done : {1, 7, 15}) {
      const fs::path store = folder / (std::to_string(done) + (gather ? "g" : "s"));
      extract_with(3, store, {.gather = gather, .stop_after = done});
      EXPECT_THROW(Store::open(store), Error) << "it was not stopped";
      extract_with(2, store, {.gather = !gather, .stop_after = 4});
      extract_with(4, store, {.gather = gather});
      expect_same(folder / "whole", store, store.filename().string());
    }
}

TEST(ExtractOnRanks, ARankThatFailsEndsAllAndWhatWasFinishedIsKept) {
  const TemporaryFolder folder;
  extract_with(1, folder / "whole");
  const fs::path store = folder / "store";
  const auto errors = ThreadRanks(3).run([&](Comm& comm) {
    Job job;
    if (comm.rank() == 2) {  // its disk is full, so to say: it never answers
      job.before = [](Comm& c) {
        c.broadcast(""), c.broadcast("");  // it begins like the others
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        fail("No space left on device", "/scratch", "make room");
      };
    }
    extract_on(comm, store, job);
  });
  EXPECT_NE(errors[0].find("rank 2 on here: No space left on device"), std::string::npos)
      << errors[0];
  extract_with(2, store);
  expect_same(folder / "whole", store, "repeated");
}

TEST(ExtractOnRanks, AStoreThatGrewOrIsRewritten) {
  const TemporaryFolder folder;
  extract_with(2, folder / "store", {.pictures = 13});
  extract_with(3, folder / "store", {.pictures = 26});
  extract_with(1, folder / "once", {.pictures = 13});
  extract_with(1, folder / "once", {.pictures = 26});
  expect_same(folder / "once", folder / "store", "grown");
  extract_with(
      3, folder / "store",
      {.pictures = 26, .broken = false, .store = {.shard_size = kShard, .retry_failed = true}});
  extract_with(
      1, folder / "once",
      {.pictures = 26, .broken = false, .store = {.shard_size = kShard, .retry_failed = true}});
  expect_same(folder / "once", folder / "store", "a failure tried again");
  EXPECT_EQ(Store::open(folder / "store").rows(), 26u);
}

TEST(ExtractOnRanks, RanksThatDifferAreRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::function<void(Job&, size_t)>& change) {
    return ThreadRanks(2).run([&](Comm& comm) {
      Job job;
      change(job, comm.rank());
      extract_on(comm, folder / "refused", job);
    })[0];
  };
  EXPECT_NE(refused([](Job& job, size_t rank) {
              job.pictures += rank;
            }).find("rank 1 on here: 27 samples are there, and 26 at rank 0"),
            std::string::npos);
  const auto isa = [](size_t rank) { return std::string(rank ? "avx2" : "avx512"); };
  const std::string mixed = refused([&](Job& job, size_t) { job.isa = isa; });
  EXPECT_NE(mixed.find("on avx2 computes there"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("`allow_mixed`"), std::string::npos) << mixed;
  EXPECT_FALSE(fs::exists(folder / "refused"));
  extract_with(2, folder / "mixed", {.mixed = true, .isa = isa});
  const Store mixed_store = Store::open(folder / "mixed");
  EXPECT_EQ(mixed_store.manifest().origins.size(), 2u) << "it is recorded";
}

// A shard that another rank says it wrote, and that cannot be seen here.
TEST(ExtractOnRanks, AFolderThatIsNotSharedIsNoticed) {
  const TemporaryFolder folder;
  Pool pool(1);
  Extractor extractor(tiny_backbone(pool), {.objectives = {"kl"}}, pool);
  const Pictures pictures(8);
  StoreWriter writer(folder / "store", extractor.spec(), {.shard_size = kShard});
  extractor.settle(writer, pictures);
  const std::vector<StoreWork> plan = writer.plan(store_samples(pictures), pictures.class_names());
  EXPECT_TRUE(writer.is_whole(plan[0]));
  EXPECT_ERROR("pass `gather`", writer.record(plan[0], {}));
}

}  // namespace
}  // namespace fungi::test
