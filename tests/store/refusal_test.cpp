// SPDX-License-Identifier: Apache-2.0
// What is refused changes nothing, also with overwrite; and what is damaged says how it is mended.
#include <unistd.h>

#include <limits>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(StoreRefusal, OverwriteKeepsTheOldStoreUntilNothingCanBeRefused) {
  Folder tmp;
  Extraction run;
  run(tmp / "train", example_samples(0, 20));
  run(tmp / "s", example_samples(0, 20));
  const auto before = contents(tmp / "s");
  const StoreOptions overwrite{.shard_size = 1, .overwrite = true};
  {  // a run that ends while its state is being found
    StoreWriter writer(tmp / "s", example_spec(), overwrite);
    EXPECT_FALSE(writer.has_state("kl-head")) << "it starts again";
    writer.put_state("kl-head", Matrix<float>(4, 4));
    EXPECT_EQ(writer.state("kl-head").rows(), 4u);
  }
  EXPECT_EQ(contents(tmp / "s"), before);
  {
    StoreWriter writer(tmp / "s", example_spec(), overwrite);
    std::vector<StoreSample> many(100001);
    for (size_t i = 0; i < many.size(); ++i) many[i].id = std::to_string(i);
    EXPECT_ERROR("at most 100000 are possible", writer.plan(many, {}));
  }
  EXPECT_EQ(contents(tmp / "s"), before);
  std::string bytes = read_file(tmp / "train/state/kl-head.npy");
  bytes.back() ^= 1;
  write_file(tmp / "train/state/kl-head.npy", bytes);
  EXPECT_ERROR("the file was changed",
               StoreWriter(tmp / "s", example_spec(), {.overwrite = true, .like = tmp / "train"}));
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreRefusal, ANewStoreThatWasRefusedIsNone) {
  Folder tmp;
  {
    StoreWriter writer(tmp / "s", example_spec());
    writer.put_state("kl-head", Matrix<float>(2, 3));
    EXPECT_ERROR("no samples", writer.plan({}, {}));
  }
  EXPECT_FALSE(fs::exists(tmp / "s/manifest.json"));
  Extraction run;
  run(tmp / "s", example_samples(0, 5));
  EXPECT_TRUE(run.totals.complete);
}

TEST(StoreRefusal, AFollowedStoreGivesItsStateBeforeAndAfterPlanning) {
  Folder tmp;
  Extraction run;
  run(tmp / "train", example_samples(0, 5));
  StoreWriter writer(tmp / "s", example_spec(), {.like = tmp / "train"});
  EXPECT_EQ(writer.state("kl-head")(1, 2), 0.5f);
  writer.plan(example_samples(0, 5), kClasses);
  fs::remove_all(tmp / "train");
  EXPECT_EQ(writer.state("kl-head")(1, 2), 0.5f);
}

TEST(StoreRefusal, AStoreToFollowThatMayNotBeLookedAt) {
  Folder tmp;
  // Root may look at everything; a name that is too long is refused to everybody.
  const std::string text = error_of([&] { followed_manifest(tmp / std::string(300, 'x')); });
  EXPECT_NE(text.find("File name too long"), std::string::npos) << text;
  EXPECT_ERROR("found no manifest.json", followed_manifest(tmp / "nothing"));
}

TEST(StoreRefusal, ADamagedManifestSaysWhatToDo) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  const std::string whole = read_file(tmp / "s/manifest.json");
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2),
                                  std::string(R"({"format": "fungi feature store"})")}) {
    write_file(tmp / "s/manifest.json", text);
    const auto before = contents(tmp / "s");
    EXPECT_ERROR("restore this file from a copy", Store::open(tmp / "s"));
    for (const bool overwrite : {false, true})
      EXPECT_ERROR("delete the whole folder yourself",
                   StoreWriter(tmp / "s", example_spec(), {.overwrite = overwrite}));
    EXPECT_EQ(contents(tmp / "s"), before);
  }
}

TEST(StoreRefusal, AShardThatIsMissingOrCutSaysThatRepeatingMendsIt) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  const auto before = contents(tmp / "s");
  const std::string mend = "repeat the command that wrote the store";
  const auto read = [&] { Store::open(tmp / "s").load(); };
  for (const std::string name : {"kl-00001.npy", "embedding-00000.npy", "rows-00001.jsonl"})
    for (const bool missing : {true, false}) {
      if (missing)
        fs::remove(tmp / "s" / name);
      else
        fs::resize_file(tmp / "s" / name, fs::file_size(tmp / "s" / name) - 5);
      EXPECT_ERROR(mend, read());
      run(tmp / "s", example_samples(0, 20));
      EXPECT_EQ(contents(tmp / "s") == before, true) << name;
    }
  fs::remove(tmp / "s/state/kl-head.npy");
  EXPECT_ERROR("the file is missing", Store::open(tmp / "s").state("kl-head"));
  EXPECT_ERROR("with `overwrite`", Store::open(tmp / "s").state("kl-head"));
}

TEST(StoreRefusal, ADamagedNumberNamesTheFileAndTheSample) {
  Folder tmp;
  Extraction run;
  run.fails = [](const std::string&) { return false; };
  run(tmp / "s", example_samples(0, 20));
  std::string bytes = read_file(tmp / "s/kl-00001.npy");
  const float bad = std::numeric_limits<float>::quiet_NaN();
  bytes.replace(bytes.size() - 2 * 3 * sizeof bad, sizeof bad,  // of the last row but one
                std::string(reinterpret_cast<const char*>(&bad), sizeof bad));
  write_file(tmp / "s/kl-00001.npy", bytes);
  const Store store = Store::open(tmp / "s");
  EXPECT_ERROR("kl-00001.npy: the row of 'images/0014.jpg'", store.load());
  Matrix<float> out(1, 3);
  const std::vector<size_t> rows{14};
  EXPECT_ERROR("kl-00001.npy: the row of 'images/0014.jpg'",
               store.read(store.select("kl"), true, rows, out));
  EXPECT_EQ(store.load("embedding").ids.size(), 20u);
}

TEST(StoreRefusal, RowsAndFailuresThatDoNotHoldAreComputedAgain) {
  Folder tmp;
  Extraction whole, run;
  whole.fails = [](const std::string& id) { return id == "images/0003.jpg"; };
  whole(tmp / "expected", example_samples(0, 20));
  run.fails = [](const std::string& id) {
    return id == "images/0003.jpg" || id == "images/0004.jpg";
  };
  run(tmp / "s", example_samples(0, 20));
  StoreOptions follow{.shard_size = 8};
  size_t looked_at = 0;
  follow.row_holds = [&](const std::string& id, std::span<const float> row) {
    ++looked_at;
    EXPECT_EQ(row.size(), 5u);
    EXPECT_EQ(row[2], example_value(id, 0, 2));
    return id != "images/0011.jpg";
  };
  follow.failure_holds = [](const std::string& id, const std::string& reason) {
    EXPECT_EQ(reason, "the file '" + id + "' ends early");
    return id == "images/0003.jpg";
  };
  whole(tmp / "s", example_samples(0, 20), follow);
  EXPECT_EQ(looked_at, 18u);
  EXPECT_EQ(whole.computed, 2u) << "the sample that failed, and the row that did not hold";
  expect_same_bytes(tmp / "expected", tmp / "s", "followed");
  // An unfinished rewrite is looked at, too.
  StoreOptions all = follow;
  all.row_holds = [](const std::string&, std::span<const float>) { return false; };
  whole.stop_after = 1;
  whole(tmp / "s", example_samples(0, 20), all);
  EXPECT_EQ(whole.computed, 7u);
  whole.stop_after = size_t(-1);
  whole(tmp / "s", example_samples(0, 20), all);
  EXPECT_EQ(whole.computed, 19u);
  expect_same_bytes(tmp / "expected", tmp / "s", "followed again");
}

}  // namespace
}  // namespace fungi::test
