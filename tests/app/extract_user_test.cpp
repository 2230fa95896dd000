// SPDX-License-Identifier: Apache-2.0
// fungi extract and its user: signals and lost outputs, what is said and where, options that
// contradict each other.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/checkpoint/npy.h"
#include "tests/support/command.h"
#include "tests/support/idx.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::run_fungi;

const fs::path kImages = FUNGI_GOLDEN_DIR "/input/images";

std::string command(const fs::path& data, const fs::path& store, const std::string& more = "") {
  return "extract " + data.string() +
         " -m " FUNGI_GOLDEN_DIR
         "/backbone/timm_vit/model.safetensors --set heads=4 --objectives kl:width=8 -j 2 -o " +
         store.string() + " " + more;
}

void copy_picture(const fs::path& to, const char* name = "grey.jpg") {
  fs::create_directories(to.parent_path());
  fs::copy(kImages / name, to);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The command with one output elsewhere.
std::string redirected(const std::string& where) { return "sh -c '\"$0\" \"$@\" " + where + "'"; }

// Runs until the signal finds it as it should: with more pictures where it was done before, later
// where it had not begun (other programs may keep the machine busy).
template <class Found>
Outcome interrupted(const test::TemporaryFolder& folder, const std::string& more, Found found) {
  Outcome outcome;
  for (size_t pictures = 640; pictures <= 163840; pictures *= 4) {
    fs::remove_all(folder / "data");
    test::write_idx(folder / "data", pictures);
    for (const char* seconds : {"0.4", "1", "2.5", "6", "15"}) {
      fs::remove_all(folder / "store");
      outcome = run_fungi(command(folder / "data", folder / "store", more),
                          std::string("timeout --preserve-status -s INT ") + seconds);
      if (outcome.status == 130 && found(outcome)) return outcome;
      if (outcome.status == 0) break;
    }
  }
  ADD_FAILURE() << "the signal never found it at work: " << outcome.err;
  return outcome;
}

TEST(ExtractUser, CtrlCStopsWithinAShardAndKeepsWhatIsDone) {
  const test::TemporaryFolder folder;
  const std::string shard = "--shard 1000000 ";
  interrupted(folder, shard, [&](const Outcome&) { return fs::exists(folder / "store/update-1"); });
  const std::string whole = command(folder / "data", folder / "store", shard + "--json");
  const auto planned = nlohmann::json::parse(run_fungi(whole + " --dry-run").out);
  EXPECT_LT(planned["to_compute"], planned["samples"]);
  const auto info =
      nlohmann::json::parse(run_fungi("info --json " + (folder / "store").string()).out);
  EXPECT_EQ(info["waiting_rows"], int(planned["samples"]) - int(planned["to_compute"]));
  const Outcome rest = run_fungi(whole);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(nlohmann::json::parse(rest.out)["computed"], planned["to_compute"]);
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "fresh", shard)).status, 0);
  EXPECT_EQ(test::contents(folder / "store"), test::contents(folder / "fresh"));
}

// Heads so wide that a sample takes a while.
TEST(ExtractUser, CtrlCIsAcknowledgedWhileSamplesAreFinished) {
  const test::TemporaryFolder folder;
  const Outcome o =
      interrupted(folder, "--objectives dino:width=100000", [&](const Outcome& outcome) {
        return contains(outcome.err, "extract: finishing the samples at hand (");
      });
  EXPECT_TRUE(contains(o.err, "samples done); Ctrl-C again stops at once")) << o.err;
}

TEST(ExtractUser, CtrlCWhileRowsAreMovedStopsBetweenShardsAndKeepsThem) {
  const test::TemporaryFolder folder;
  const fs::path store = folder / "store";
  const std::string moved = command(folder / "data", store, "--shard 4");
  Outcome o;
  const auto found = [&] { return o.status == 130 && contains(o.out, " more wait, 0 computed"); };
  for (size_t pictures = 640; pictures <= 40960 && !found(); pictures *= 4) {
    fs::remove_all(store);
    test::write_idx(folder / "data", pictures);
    ASSERT_EQ(run_fungi(command(folder / "data", store)).status, 0);
    for (const char* seconds : {"0.2", "0.4", "1", "2.5", "6", "15"}) {
      o = run_fungi(moved, std::string("timeout --preserve-status -s INT ") + seconds);
      if (found() || o.status == 0) break;
    }
  }
  EXPECT_TRUE(found()) << "the signal never found it at work: " << o.out << o.err;
  EXPECT_TRUE(contains(o.err, "interrupted; repeat the command to go on")) << o.err;
  EXPECT_TRUE(contains(run_fungi("info " + store.string()).out, "a rewrite is not finished"));
  const Outcome rest = run_fungi(moved);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_TRUE(contains(rest.out, " 0 computed now")) << rest.out;
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "fresh", "--shard 4")).status, 0);
  EXPECT_EQ(test::contents(store), test::contents(folder / "fresh"));
}

TEST(ExtractUser, CtrlCWhileNegativesAreDrawn) {
  const test::TemporaryFolder folder;
  const Outcome o =
      interrupted(folder, "--objectives simclr:width=4,negatives=200000",
                  [](const Outcome& outcome) { return contains(outcome.out, ", 0 computed now"); });
  EXPECT_TRUE(contains(o.err, "interrupted; repeat the command to go on")) << o.err;
  EXPECT_FALSE(contains(o.err, "extract: ")) << o.err;
}

TEST(ExtractUser, AnIgnoredSignalStaysIgnored) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 2560);
  const Outcome o = run_fungi(
      command(folder / "data", folder / "store", "--shard 16"),
      "sh -c 'trap \"\" INT; \"$0\" \"$@\" & p=$!; for i in 1 2 3; do sleep 0.1; kill -INT "
      "$p 2>/dev/null; done; wait $p'");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_FALSE(contains(o.err, "interrupted")) << o.err;
}

TEST(ExtractUser, LostOutputs) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 5);
  const Outcome deaf = run_fungi(command(folder / "data", folder / "a"), redirected("2>/dev/full"));
  EXPECT_EQ(deaf.status, 0) << "nobody hears the notes, but the result is there";
  EXPECT_TRUE(contains(deaf.out, "5 rows"));
  for (const char* arguments : {"", " --json"}) {
    const Outcome mute =
        run_fungi(command(folder / "data", folder / "a", arguments), redirected(">/dev/full"));
    EXPECT_EQ(mute.status, 1);
    EXPECT_TRUE(contains(mute.err, "stdout: No space left on device")) << mute.err;
    EXPECT_FALSE(contains(mute.err, "internal error")) << mute.err;
  }
  EXPECT_EQ(run_fungi("models --json", redirected(">/dev/full")).status, 1);
  EXPECT_EQ(run_fungi("no-such-verb", redirected("2>/dev/full")).status, 2);
  // A file opened first would otherwise be stderr, and have the notes in it.
  fs::remove_all(folder / "data");
  copy_picture(folder / "data/a.jpg");
  std::ofstream(folder / "data/b.jpg") << "broken: there is something to say";
  EXPECT_EQ(run_fungi(command(folder / "data", folder / "b"), redirected("2>&-")).status, 3);
  EXPECT_EQ(fs::file_size(folder / "b/.lock"), 0u);
}

TEST(ExtractUser, LikeGivesClassesTheSameNumbers) {
  const test::TemporaryFolder folder;
  for (const char* name :
       {"train/bee/1.jpg", "train/cat/1.jpg", "test/ant/1.jpg", "test/cat/1.jpg", "test/loose.jpg"})
    copy_picture(folder / name);
  ASSERT_EQ(run_fungi(command(folder / "train", folder / "a")).status, 0);
  const Outcome run =
      run_fungi(command(folder / "test", folder / "b", "--json --like " + (folder / "a").string()));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string rows = test::read_file(folder / "b/rows-00000.jsonl");
  EXPECT_TRUE(contains(rows, R"("id":"cat/1.jpg","label":1,)")) << rows;
  EXPECT_TRUE(contains(rows, R"("id":"ant/1.jpg","label":2,)")) << rows;
  const auto manifest = nlohmann::json::parse(test::read_file(folder / "b/manifest.json"));
  EXPECT_EQ(manifest["classes"], (nlohmann::json{"bee", "cat", "ant"}));
  const std::string notes = nlohmann::json::parse(run.out)["notes"].dump();
  EXPECT_TRUE(contains(notes, "1 picture(s) lie outside the class folders and have no label"));
  const Outcome itself =
      run_fungi(command(folder / "train", folder / "a", "--like " + (folder / "a").string()));
  EXPECT_EQ(itself.status, 1);
  EXPECT_TRUE(contains(itself.err, "cannot follow itself")) << itself.err;
}

TEST(ExtractUser, ARefusedRunLeavesNothingBehind) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 3);
  fs::create_directory(folder / "mine");
  std::ofstream(folder / "mine/notes.txt") << "x";
  EXPECT_EQ(run_fungi(command(folder / "data", folder / "mine")).status, 1);
  EXPECT_EQ(test::contents(folder / "mine").size(), 1u);
}

TEST(ExtractUser, ALimitIsNoReasonToPrune) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 9);
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "s")).status, 0);
  const Outcome fewer = run_fungi(command(folder / "data", folder / "s", "--limit 4"));
  EXPECT_EQ(fewer.status, 1);
  EXPECT_TRUE(contains(fewer.err, "--limit leaves the first 4 of 9 samples")) << fewer.err;
  EXPECT_FALSE(contains(fewer.err, "--prune")) << fewer.err;
  EXPECT_EQ(run_fungi(command(folder / "data", folder / "s", "--limit 4 --prune")).status, 2);
  test::write_idx(folder / "data", 6);
  const Outcome dry = run_fungi(command(folder / "data", folder / "s", "--prune --dry-run"));
  EXPECT_EQ(dry.status, 0);
  EXPECT_TRUE(contains(dry.out, "would drop 3 rows")) << dry.out;
  const Outcome pruned = run_fungi(command(folder / "data", folder / "s", "--prune --json"));
  EXPECT_EQ(nlohmann::json::parse(pruned.out)["dropped"], 3);
}

TEST(ExtractUser, NamesOfAnyBytes) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "data/\x1b[31mred.jpg");
  std::ofstream(folder / "data/\x1b[32mbad.jpg") << "no picture";
  const Outcome run =
      run_fungi(command(folder / "data", "'" + (folder / "s\xff").string() + "'", "--json"));
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["rows"], 1);
  const Outcome shown = run_fungi(command(folder / "data", folder / "t")),
                info = run_fungi("info " + (folder / "t").string());
  EXPECT_TRUE(contains(shown.err, "failed: ?[32mbad.jpg: ")) << shown.err;
  EXPECT_TRUE(contains(info.out, "?[31mred.jpg")) << info.out;
  const Outcome refused = run_fungi(command("/no/'\x1b[33m'/folder", folder / "u"));
  for (const Outcome* o : {&shown, &info, &refused})
    EXPECT_FALSE(contains(o->out + o->err, "\x1b[3")) << o->err;
}

TEST(ExtractUser, FailuresAreShownWithWhatToDo) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "data/good.jpg");
  for (const char* name : {"a", "b", "c", "d"})
    copy_picture(folder / ("data/" + std::string(name) + ".jpg"), "cut.jpg");
  std::ofstream(folder / "data/README") << "x";
  const Outcome run = run_fungi(command(folder / "data", folder / "s"));
  EXPECT_EQ(run.status, 3);
  EXPECT_TRUE(contains(run.err, "failed: c.jpg: ")) << run.err;
  EXPECT_FALSE(contains(run.err, "failed: d.jpg: ")) << run.err;
  EXPECT_TRUE(contains(run.err, "failed: 1 more, see failed.jsonl")) << run.err;
  EXPECT_TRUE(contains(run.err, "1 file(s) without extension are no images")) << run.err;
  const auto line =
      nlohmann::json::parse(test::read_file(folder / "s/failed.jsonl")
                                .substr(0, test::read_file(folder / "s/failed.jsonl").find('\n')));
  EXPECT_TRUE(contains(line.value("hint", ""), "truncated")) << line;
  const Outcome again = run_fungi(command(folder / "data", folder / "s"));
  EXPECT_EQ(again.status, 3);
  EXPECT_TRUE(contains(again.err, "4 failures recorded before were not tried again")) << again.err;
  EXPECT_FALSE(contains(again.err, "time by stage")) << "nothing was computed";
  EXPECT_TRUE(contains(run_fungi("info " + (folder / "s").string()).out, "hint: "))
      << "in info, too";

  const Outcome strict = run_fungi(command(folder / "data", folder / "strict", "--strict"));
  EXPECT_EQ(strict.status, 1);
  EXPECT_TRUE(contains(strict.err, "the run goes on: this file is recorded")) << strict.err;

  fs::remove(folder / "data/good.jpg");
  for (int repeated = 0; repeated < 2; ++repeated) {
    const Outcome none = run_fungi(command(folder / "data", folder / "none"));
    EXPECT_EQ(none.status, 1);
    EXPECT_TRUE(contains(none.err, "a.jpg: none of the 4 samples could be used; the first: "))
        << none.err;
  }
}

TEST(ExtractUser, WhatIsWrongIsSaidAtOnce) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 3);
  const auto run = [&](const std::string& more) {
    return run_fungi(command(folder / "data", folder / "s", more));
  };
  for (const char* dry : {"", " --dry-run"})
    EXPECT_EQ(run(std::string("--storage float16 --keep-factors") + dry).status, 2);
  for (const char* wrong : {"--kind folder", "--projection signs", "--seed 99999999999999999999"})
    EXPECT_EQ(run(wrong).status, 2) << wrong;
  Matrix<float> weight(8, 32), bias(1, 8);
  weight(3, 4) = NAN;
  write_npz(folder / "heads.npz",
            {{"kl-head-weight", npy_array(weight)}, {"kl-head-bias", npy_array(bias)}});
  const Outcome given = run("--given " + (folder / "heads.npz").string());
  EXPECT_EQ(given.status, 1);
  EXPECT_TRUE(contains(given.err, "'kl-head-weight' holds nan at [3, 4]")) << given.err;
  EXPECT_FALSE(fs::exists(folder / "s"));
}

TEST(ExtractUser, APcaIsWrittenIntoNobodysFolder) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 20);
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "s")).status, 0);
  const auto pca = [&](const char* out) {
    return run_fungi("pca " + (folder / "s").string() + " --dim 4 -o " + (folder / out).string());
  };
  fs::create_directory(folder / "mine");
  std::ofstream(folder / "mine/notes.txt") << "x";
  const Outcome refused = pca("mine");
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "'notes.txt'")) << refused.err;
  EXPECT_EQ(test::contents(folder / "mine").size(), 1u);
  EXPECT_EQ(pca("new").status, 0);
  EXPECT_EQ(pca("new").status, 0) << "an older one is replaced";
  EXPECT_EQ(pca("s").status, 1);
}

}  // namespace
}  // namespace fungi
