// SPDX-License-Identifier: Apache-2.0
// A Store that stays open while its folder changes: rows are those of its ids, or there is an
// Error.
#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

constexpr char kRewritten[] = "the store was rewritten since it was opened";

std::vector<StoreSample> reversed(std::vector<StoreSample> samples) {
  std::reverse(samples.begin(), samples.end());
  return samples;
}

// Shards whose rows are given out; all of them hold the numbers of their ids.
size_t readable_shards(const Store& store, const std::string& when) {
  size_t readable = 0;
  for (size_t shard = 0; shard < store.shards(); ++shard) {
    const size_t first = store.first_row(shard), count = store.first_row(shard + 1) - first;
    for (const StoreBlock& b : store.select("embedding+kl")) {
      Matrix<float> rows(count, b.width);
      const std::string refused = error_of([&] { store.read({b}, false, first, rows); });
      EXPECT_TRUE(refused.empty() || refused.find(kRewritten) != std::string::npos)
          << when << ": " << refused;
      for (size_t i = 0; refused.empty() && i < count; ++i)
        for (size_t j = 0; j < b.width; ++j)
          EXPECT_EQ(rows(i, j), example_value(store.ids()[first + i], b.name == "kl", j))
              << when << ": shard " << shard << " of " << b.name << ", " << store.ids()[first + i];
      readable += refused.empty() && b.name == "kl";
    }
  }
  return readable;
}

// Looks before every change on disk.
StoreOptions watched(const Store& store, StoreOptions options = {}) {
  options.shard_size = 8;
  options.on_step = [&store](const char* step) { readable_shards(store, step); };
  return options;
}

TEST(StoreRewritten, RowsOfOtherIdsAreNeverGiven) {
  const std::vector<StoreSample> samples = example_samples(0, 60, 2);
  struct Change {
    const char* name;
    std::vector<StoreSample> samples;
    bool overwrite = false, prune = false;
  };
  for (const Change& change :
       {Change{"reordered", reversed(samples)}, Change{"inserted", example_samples(0, 60)},
        Change{"overwritten", reversed(samples), true},
        Change{"pruned", example_samples(8, 60, 2), false, true}}) {
    SCOPED_TRACE(change.name);
    Folder tmp;
    Extraction run;
    run(tmp / "s", samples);
    const Store store = Store::open(tmp / "s");
    ASSERT_EQ(readable_shards(store, "at first"), store.shards());
    run(tmp / "s", change.samples,
        watched(store, {.overwrite = change.overwrite, .prune = change.prune}));
    EXPECT_EQ(readable_shards(store, "at last"), 0u);
    EXPECT_ERROR(kRewritten, store.load());
    EXPECT_ERROR("open it again", store.map("kl", 0));
    const std::vector<size_t> some{3, 1};
    EXPECT_ERROR(kRewritten, store.gather("kl", some));
    const Store again = Store::open(tmp / "s");
    EXPECT_EQ(readable_shards(again, "opened again"), again.shards());
  }
}

TEST(StoreRewritten, FullShardsStayReadableWhileAStoreGrows) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));  // two full shards and half of one
  const Store store = Store::open(tmp / "s");
  run(tmp / "s", example_samples(0, 100), watched(store));
  EXPECT_EQ(readable_shards(store, "at last"), 2u);
  Extraction stopped{.stop_after = 2};  // a store that is being written
  stopped(tmp / "half", example_samples(0, 40));
  const Store half = Store::open(tmp / "half", true);
  run(tmp / "half", example_samples(0, 40), watched(half));
  EXPECT_EQ(readable_shards(half, "at last"), 2u);
}

TEST(StoreRewritten, ARewriteThatWaitsIsReadWhileItIsMovedInPlace) {
  Folder tmp;
  Extraction run;
  const std::vector<StoreSample> samples = reversed(example_samples(0, 40));
  run(tmp / "s", example_samples(0, 40));
  struct Killed {};
  StoreOptions options{.shard_size = 8};
  options.on_step = [](const char* step) {
    if (std::string(step).starts_with("move")) throw Killed();
  };
  EXPECT_THROW(run(tmp / "s", samples, options), Killed);
  const Store store = Store::open(tmp / "s");
  ASSERT_TRUE(fs::exists(tmp / "s/update-1/commit.json"));
  EXPECT_EQ(readable_shards(store, "waiting"), store.shards());
  size_t steps = 0;
  options.on_step = [&](const char* step) {
    EXPECT_EQ(readable_shards(store, step), store.shards()) << step;
    ++steps;
  };
  run(tmp / "s", samples, options);
  EXPECT_GT(steps, store.shards());
  EXPECT_FALSE(fs::exists(tmp / "s/update-1"));
  EXPECT_EQ(readable_shards(store, "moved"), store.shards());
}

// Some file systems give a file another number without anybody touching it; its rows decide.
TEST(StoreRewritten, AnotherNumberOfTheSameFileIsNoRewrite) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 8));
  const Store store = Store::open(tmp / "s");
  const fs::path rows = tmp / "s/rows-00000.jsonl";
  const auto time = fs::last_write_time(rows);
  const auto replace = [&](const std::string& text) {
    write_file(tmp / "new", text);
    fs::last_write_time(tmp / "new", time);
    fs::rename(tmp / "new", rows);
  };
  const std::string text = read_file(rows);
  replace(text);
  EXPECT_EQ(readable_shards(store, "the same rows"), store.shards());
  std::string other = text;
  std::swap(other[other.find(store.ids()[0])], other[other.find(store.ids()[0]) + 1]);
  ASSERT_NE(other, text);
  replace(other);
  EXPECT_EQ(readable_shards(store, "other rows"), store.shards() - 1);
}

}  // namespace
}  // namespace fungi::test
