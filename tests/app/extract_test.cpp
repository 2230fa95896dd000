// SPDX-License-Identifier: Apache-2.0
// fungi extract as a user runs it: resume after kill -9 to the last byte, grown folders, bad files,
// mismatches, Ctrl-C.
#include "tests/support/extract.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "fungi/checkpoint/npy.h"
#include "tests/support/command.h"
#include "tests/support/idx.h"
#include "tests/support/kills.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::extract;
using test::kModel;
using test::Outcome;
using test::run_fungi;
using test::write_idx;

TEST(Extract, WritesAStoreThatSaysWhatItIs) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 10);
  const Outcome dry = run_fungi(extract(folder / "data", folder / "store", "--dry-run --json"));
  ASSERT_EQ(dry.status, 0) << dry.err;
  EXPECT_EQ(nlohmann::json::parse(dry.out)["to_compute"], 10);
  EXPECT_FALSE(fs::exists(folder / "store"));
  const Outcome run = run_fungi(extract(folder / "data", folder / "store", "--json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out);
  EXPECT_EQ(result["rows"], 10);
  EXPECT_TRUE(result["complete"]);
  for (const char* file : {"manifest.json", "embedding-00000.npy", "kl-00002.npy", "dino-00000.npy",
                           "simclr-00001.npy", "rows-00000.jsonl", "state/simclr-negatives.npy"})
    EXPECT_TRUE(fs::exists(folder / "store" / file)) << file;
  const Outcome again = run_fungi(extract(folder / "data", folder / "store", "--json"));
  EXPECT_EQ(nlohmann::json::parse(again.out)["computed"], 0);
}

TEST(Extract, KilledAtRandomMomentsEndsWithTheSameBytes) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 24);
  test::expect_kills_leave_no_trace(
      folder, [&](const fs::path& store) { return extract(folder / "data", store); });
}

TEST(Extract, AGrownFolderAddsOnlyWhatIsNew) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 8);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "store")).status, 0);
  write_idx(folder / "data", 11);
  const auto grown =
      nlohmann::json::parse(run_fungi(extract(folder / "data", folder / "store", "--json")).out);
  EXPECT_EQ(grown["computed"], 3);
  EXPECT_EQ(grown["rows"], 11);
}

TEST(Extract, LikeUsesTheSameStateAndRefusesAMismatch) {
  const test::TemporaryFolder folder;
  write_idx(folder / "train", 9);
  write_idx(folder / "test", 5, 2);
  ASSERT_EQ(run_fungi(extract(folder / "train", folder / "a")).status, 0);
  const std::string like = "--like " + (folder / "a").string();
  ASSERT_EQ(run_fungi(extract(folder / "test", folder / "b", like)).status, 0);
  for (const char* file : {"state/simclr-negatives.npy", "state/kl-head-weight.npy"})
    EXPECT_EQ(test::read_file(folder / "a" / file), test::read_file(folder / "b" / file)) << file;
  const Outcome other = run_fungi(extract(folder / "test", folder / "c", like + " --seed 7"));
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("seed"), std::string::npos) << other.err;
  EXPECT_EQ(run_fungi(extract(folder / "train", folder / "a", "--seed 7")).status, 1)
      << "resuming with other settings";
}

TEST(Extract, LikeSaysWhatIsLeftOut) {
  const test::TemporaryFolder folder;
  write_idx(folder / "train", 9);
  write_idx(folder / "test", 5, 2);
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const std::string settings =
      kModel + std::string(
                   "--objectives kl:temperature=3,width=8 dino_b:width=8,local_crops=1 "
                   "--preset paper --projection gaussian --projection-dim 12 --seed 7 "
                   "--layer blocks.1.mlp.fc2 --exif --allow-truncated --storage float16 ");
  const std::string test = "extract " + at("test") + " --like ";
  for (const std::string& more : {settings, kModel + std::string("--objectives none --exif ")}) {
    fs::remove_all(folder / "train-store");
    fs::remove_all(folder / "said");
    fs::remove_all(folder / "left-out");
    ASSERT_EQ(run_fungi("extract " + at("train") + more + "-o " + at("train-store")).status, 0);
    ASSERT_EQ(run_fungi(test + at("train-store") + more + "-o " + at("said")).status, 0);
    const Outcome o = run_fungi(test + at("train-store") + " -o " + at("left-out"));
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(test::contents(folder / "left-out"), test::contents(folder / "said"));
  }
  // An option that is given is compared, also where it has the default's value.
  ASSERT_EQ(run_fungi("extract " + at("train") + settings + "-o " + at("a")).status, 0);
  for (const char* other : {" --seed 42", " --objectives kl", " --storage float32",
                            " --projection sign", " --set heads=2"})
    EXPECT_EQ(run_fungi(test + at("a") + other + " -o " + at("b")).status, 1) << other;
  // One fact stated anew does not take back the others: without heads=4 there is no reading it.
  const std::string mean = "--set mean=0.4 --objectives none -o ";
  ASSERT_EQ(run_fungi("extract " + at("train") + kModel + mean + at("facts")).status, 0);
  const Outcome facts = run_fungi(test + at("facts") + " " + mean + at("facts-test"));
  EXPECT_EQ(facts.status, 0) << facts.err;
  EXPECT_EQ(run_fungi("extract " + at("test") + " -o " + at("b")).status, 2) << "no model";
  EXPECT_EQ(run_fungi(test + at("a") + " --exif=false -o " + at("b")).status, 1);
  EXPECT_EQ(run_fungi(test + "\"\" -o " + at("b")).status, 2) << "an empty name";
  const Outcome nothing = run_fungi(test + at("train") + " -o " + at("b"));
  EXPECT_EQ(nothing.status, 1);
  EXPECT_NE(nothing.err.find("found no manifest.json"), std::string::npos) << nothing.err;
  EXPECT_FALSE(fs::exists(folder / "b"));
}

TEST(Extract, LikeLooksForTheModelWhereItWas) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 5);
  const auto at = [&](const char* name) { return (folder / name).string(); };
  fs::copy(FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors", folder / "model.safetensors");
  ASSERT_EQ(run_fungi("extract " + at("data") + " -m " + at("model.safetensors") +
                      " --set heads=4 --objectives kl -o " + at("a"))
                .status,
            0);
  fs::rename(folder / "model.safetensors", folder / "moved.safetensors");
  const std::string like = "extract " + at("data") + " --like " + at("a") + " -o " + at("b");
  const Outcome gone = run_fungi(like);
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.err.find("say where it is with -m"), std::string::npos) << gone.err;
  EXPECT_EQ(run_fungi(like + " -m " + at("moved.safetensors")).status, 0);
}

TEST(Extract, BadFilesAreRecordedAndSkipped) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "data/a");
  for (const auto& entry : fs::directory_iterator(FUNGI_GOLDEN_DIR "/input/images"))
    if (entry.path().extension() == ".jpg" && entry.file_size() < 20000)
      fs::copy(entry.path(), folder / "data/a");
  std::ofstream(folder / "data/a/zz-empty.jpg");
  std::ofstream(folder / "data/a/zz-text.png") << "this is no picture";
  const std::string base = "extract " + (folder / "data").string() + kModel + "--objectives kl -o ";
  const Outcome partial = run_fungi(base + (folder / "store").string() + " --json");
  EXPECT_EQ(partial.status, 3) << partial.err;
  EXPECT_GE(nlohmann::json::parse(partial.out)["failed"], 2);
  const std::string failed = test::read_file(folder / "store/failed.jsonl");
  EXPECT_NE(failed.find("zz-empty.jpg"), std::string::npos);
  EXPECT_NE(failed.find("zz-text.png"), std::string::npos);
  const Outcome strict = run_fungi(base + (folder / "strict").string() + " --strict");
  EXPECT_EQ(strict.status, 1);
  EXPECT_NE(strict.err.find("a/"), std::string::npos) << "must name the file: " << strict.err;
  EXPECT_EQ(run_fungi(base + (folder / "strict").string() + " --strict").status, 1)
      << "a recorded failure still stops --strict";
}

TEST(Extract, StrictStopsAsOftenAsItIsRun) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "data/a");
  for (const auto& entry : fs::directory_iterator(FUNGI_GOLDEN_DIR "/input/images"))
    if (entry.path().filename().string().starts_with("exif_"))
      fs::copy(entry.path(), folder / "data/a");
  std::ofstream(folder / "data/a/0-empty.jpg");  // in the first of several shards
  const std::string base = "extract " + (folder / "data").string() + kModel +
                           "--objectives kl --shard 2 --strict -o " + (folder / "store").string();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run_fungi(base).status, 1) << i;
  fs::remove(folder / "data/a/0-empty.jpg");
  EXPECT_EQ(run_fungi(base).status, 0);
}

TEST(Extract, AStoreKeepsTheHeadsItBeganWith) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 6);
  const auto head = [&](const char* name, float value) {
    Matrix<float> weight(8, 32), bias(1, 8);
    for (size_t i = 0; i < 8 * 32; ++i) weight.data()[i] = value * float(i % 7);
    write_npz(folder / name,
              {{"kl-head-weight", npy_array(weight)}, {"kl-head-bias", npy_array(bias)}});
    return " --given " + (folder / name).string();
  };
  const std::string one = head("one.npz", 1), two = head("two.npz", -2);
  const auto run = [&](const char* store, const std::string& more) {
    return run_fungi("extract " + (folder / "data").string() + kModel +
                     "--objectives kl:width=8 -o " + (folder / store).string() + more);
  };
  ASSERT_EQ(run("a", one).status, 0);
  EXPECT_EQ(run("a", one).status, 0);
  EXPECT_EQ(run("a", "").status, 0) << "the store has them";
  const Outcome other = run("a", two);
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("keeps the state it began with"), std::string::npos) << other.err;
  EXPECT_EQ(run("b", two + " --like " + (folder / "a").string()).status, 1);
  EXPECT_FALSE(fs::exists(folder / "b"));
  EXPECT_EQ(run("b", one + " --like " + (folder / "a").string()).status, 0);
  // Refused before anything is thrown away, and in a dry run, too.
  const auto before = test::contents(folder / "b");
  for (const char* how : {" --overwrite", " --dry-run"}) {
    const Outcome refused = run("b", two + how + " --like " + (folder / "a").string());
    EXPECT_EQ(refused.status, 1) << how;
    EXPECT_NE(refused.err.find("omit --like"), std::string::npos) << refused.err;
    EXPECT_EQ(test::contents(folder / "b") == before, true) << how;
  }

  // A kill while a rewrite was being moved in place: the same command finishes it.
  fs::create_directory(folder / "b/update-1");
  for (const auto& entry : fs::directory_iterator(folder / "b"))
    if (entry.is_regular_file()) fs::copy(entry.path(), folder / "b/update-1");
  std::ofstream(folder / "b/update-1/commit.json") << R"({"shards":1})";
  const Outcome resumed = run("b", one + " --like " + (folder / "a").string());
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(test::contents(folder / "b") == before, true);

  // Stores with other heads, or of another model, are not compared.
  ASSERT_EQ(run("c", two).status, 0);
  const auto knn = [&](const char* test, const std::string& more) {
    return run_fungi("knn " + (folder / "a").string() + " " + (folder / test).string() + " -k 1 " +
                     more);
  };
  EXPECT_EQ(knn("b", "").status, 0);
  EXPECT_EQ(knn("c", "--features embedding").status, 0) << "which has no heads";
  const Outcome heads = knn("c", "");
  EXPECT_EQ(heads.status, 1);
  EXPECT_NE(heads.err.find("state.kl-head-weight"), std::string::npos) << heads.err;
}

TEST(Extract, AStoreIsContinuedAndFollowedInItsOwnPrecision) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 4);
  const auto run = [&](const char* store, const std::string& more) {
    const Outcome o = run_fungi("extract " + (folder / "data").string() + kModel +
                                "--objectives kl -o " + (folder / store).string() + " " + more);
    EXPECT_EQ(o.status, 0) << o.err;
    return nlohmann::json::parse(test::read_file(folder / store / "manifest.json"))["precision"];
  };
  for (const char* precision : {"f32", "bf16"}) {  // one of them is not what auto chooses here
    const std::string like = " --like " + (folder / precision).string();
    EXPECT_EQ(run(precision, std::string("--precision ") + precision), precision);
    write_idx(folder / "data", 6);
    EXPECT_EQ(run(precision, ""), precision);
    EXPECT_EQ(run((std::string(precision) + "-like").c_str(), like), precision);
  }
}

TEST(Extract, PaperPresetTakesNorm1ForTheActivationOfTorchvisionModels) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 3);
  auto run = [&](const std::string& model, const std::string& preset) {
    const fs::path store = folder / (preset + model.substr(0, 4));
    const Outcome outcome =
        run_fungi("extract " + (folder / "data").string() + " -m " FUNGI_GOLDEN_DIR "/backbone/" +
                  model + " --objectives kl --preset " + preset + " -o " + store.string());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return std::array{test::read_file(store / "embedding-00000.npy"),
                      test::read_file(store / "kl-00000.npy"),
                      test::read_file(store / "manifest.json")};
  };
  // KL is the same in both presets but for this.
  const auto native = run("torchvision_vit/model.pth --set heads=2", "native"),
             paper = run("torchvision_vit/model.pth --set heads=2", "paper");
  EXPECT_EQ(native[0], paper[0]);
  EXPECT_NE(native[1], paper[1]);
  EXPECT_NE(paper[2].find("norm1"), std::string::npos);
  const std::string deit = "timm_deit --set heads=2", augreg = "timm_vit --set heads=4";
  EXPECT_EQ(run(deit, "native")[1], run(deit, "paper")[1]);
  fs::remove_all(folder / "nativetimm");
  fs::remove_all(folder / "papertimm");
  // AugReg, by the tag of config.json: the paper ran it with ImageNet's statistics.
  EXPECT_NE(run(augreg, "native")[0], run(augreg, "paper")[0]);
}

// By Ctrl-C, or because the terminal was closed.
void expect_saved_at(const std::string& signal) {
  const test::TemporaryFolder folder;
  Outcome stopped;
  // As many pictures as keep this machine busy until the signal comes, which must find the program
  // at work: before that it ends with the same status.
  for (const auto& [pictures, seconds] : {std::pair<size_t, const char*>{160, "0.3"},
                                          {640, "0.3"},
                                          {2560, "1"},
                                          {10240, "2"},
                                          {40960, "4"}}) {
    fs::remove_all(folder / "data");
    fs::remove_all(folder / "store");
    write_idx(folder / "data", pictures);
    stopped = run_fungi(extract(folder / "data", folder / "store"),
                        std::string("timeout --preserve-status -s ") + signal + " " + seconds);
    if (fs::exists(folder / "store/rows-00000.jsonl") && stopped.status != 0) break;
  }
  ASSERT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("repeat the command"), std::string::npos) << stopped.err;
  const Outcome rest = run_fungi(extract(folder / "data", folder / "store", "--json"));
  ASSERT_EQ(rest.status, 0) << rest.err;
  const auto done = nlohmann::json::parse(rest.out);
  EXPECT_LT(done["computed"], done["rows"]);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "whole")).status, 0);
  EXPECT_EQ(test::contents(folder / "store"), test::contents(folder / "whole"));
}

TEST(Extract, CtrlCSavesAndExits130) { expect_saved_at("INT"); }
TEST(Extract, AClosedTerminalSavesAndExits130) { expect_saved_at("HUP"); }

TEST(Extract, ClearRefusals) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "empty");
  EXPECT_EQ(
      run_fungi("extract " + (folder / "empty").string() + kModel + "-o " + (folder / "s").string())
          .status,
      1);
  EXPECT_EQ(run_fungi("extract /no/such/folder" + kModel + "-o " + (folder / "s").string()).status,
            1);
  write_idx(folder / "data", 3);
  const Outcome objective = run_fungi("extract " + (folder / "data").string() + kModel +
                                      "--objectives klm -o " + (folder / "s").string());
  EXPECT_EQ(objective.status, 2);
  EXPECT_NE(objective.err.find("simclr"), std::string::npos)
      << "must name the choices: " << objective.err;
  EXPECT_EQ(
      run_fungi("extract " + (folder / "data").string() + kModel + "--objectives kl -o /proc/nope")
          .status,
      1);
  // Numbers below zero are no very large ones.
  for (const char* option : {"--shard -1", "--limit -1", "--seed -1", "--projection-dim -1"}) {
    const Outcome o = run_fungi("extract " + (folder / "data").string() + kModel +
                                "--objectives kl -o " + (folder / "s").string() + " " + option);
    EXPECT_EQ(o.status, 2) << option;
    EXPECT_NE(o.err.find("at least 0, found -1"), std::string::npos) << o.err;
  }
  // A store keeps the size of its shards: another one would rewrite them all.
  const std::string again = "extract " + (folder / "data").string() + kModel +
                            "--objectives none -q -o " + (folder / "small").string();
  ASSERT_EQ(run_fungi(again + " --shard 2").status, 0);
  const auto shards = test::contents(folder / "small");
  ASSERT_EQ(run_fungi(again).status, 0);
  EXPECT_EQ(test::contents(folder / "small"), shards);
  // Nor is a leading zero the sign of an octal number.
  const auto store = folder / "decimal";
  ASSERT_EQ(run_fungi("extract " + (folder / "data").string() + kModel +
                      "--objectives none -q --seed 042 -o " + store.string())
                .status,
            0);
  EXPECT_EQ(nlohmann::json::parse(test::read_file(store / "manifest.json"))["settings"]["seed"],
            42);
  EXPECT_EQ(run_fungi("extract " + (folder / "data").string() + kModel + "--objectives kl -o " +
                      (folder / "s").string() + " --projection-dim 4611686018427387904")
                .status,
            1);
}

}  // namespace
}  // namespace fungi
