// SPDX-License-Identifier: Apache-2.0
// Options of fungi extract that change what is read: each must have its effect, and no other.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/extract.h"
#include "tests/support/idx.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

const fs::path kImages = FUNGI_GOLDEN_DIR "/input/images";
const std::string kKl = "--objectives kl:width=8 ";

void copy_picture(const fs::path& to, const char* name) {
  fs::create_directories(to.parent_path());
  fs::copy(kImages / name, to);
}

std::string extract(const fs::path& data, const fs::path& store, const std::string& more = "") {
  return test::extract(data, store, more, kKl);
}

TEST(ExtractOptions, ExifTurnsPictures) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "data/a.jpg", "exif_6.jpg");
  copy_picture(folder / "data/b.jpg", "exif_1.jpg");  // as it is stored
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "plain")).status, 0);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "turned", "--exif")).status, 0);
  const auto rows = [&](const char* store) {
    const std::string file = test::read_file(folder / store / "embedding-00000.npy");
    const size_t row = (file.size() - 128) / 2;  // behind numpy's header
    return std::pair(file.substr(128, row), file.substr(128 + row));
  };
  EXPECT_NE(rows("plain").first, rows("turned").first);
  EXPECT_EQ(rows("plain").second, rows("turned").second);
}

// The remedy that failed.jsonl names must work on the very store that it lies in.
TEST(ExtractOptions, CutPicturesMayBeTakenLater) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "data/cut.jpg", "cut.jpg");
  copy_picture(folder / "data/whole.jpg", "grey.jpg");
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "s")).status, 3);
  EXPECT_NE(test::read_file(folder / "s/failed.jsonl").find("`allow_truncated`"),
            std::string::npos);
  for (const char* json : {"", " --json"}) {
    const std::string said = run_fungi("info " + (folder / "s").string() + json).out;
    EXPECT_NE(said.find("with --allow-truncated and --retry-failed"), std::string::npos) << said;
  }
  const Outcome mended =
      run_fungi(extract(folder / "data", folder / "s", "--allow-truncated --retry-failed --json"));
  ASSERT_EQ(mended.status, 0) << mended.err;
  EXPECT_EQ(Json::parse(mended.out)["computed"], 1);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "fresh", "--allow-truncated")).status, 0);
  EXPECT_EQ(test::contents(folder / "s"), test::contents(folder / "fresh"));
  const Outcome without = run_fungi(extract(folder / "data", folder / "s"));
  EXPECT_EQ(without.status, 1) << "its row would say that the picture is whole";
  EXPECT_NE(without.err.find("allow_truncated"), std::string::npos) << without.err;
}

TEST(ExtractOptions, ColumnsAreThoseOfListsOfTexts) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "data/a.jpg", "grey.jpg");
  for (const char* option : {"--text-column", "--label-column", "--id-column"}) {
    const Outcome o =
        run_fungi(extract(folder / "data", folder / "s", option + std::string(" text --dry-run")));
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find("only lists of texts have columns"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("--label-column"), std::string::npos) << o.err;
  }
}

TEST(ExtractOptions, SplitAndKindDecideWhatIsRead) {
  const test::TemporaryFolder folder;
  copy_picture(folder / "d/train/cat/1.jpg", "grey.jpg");
  copy_picture(folder / "d/train/dog/2.jpg", "grey.jpg");
  copy_picture(folder / "d/test/cat/3.jpg", "grey.jpg");
  const auto planned = [&](const std::string& more) {
    const Outcome o = run_fungi(extract(folder / "d", folder / "s", "--dry-run --json " + more));
    EXPECT_EQ(o.status, 0) << o.err;
    const Json json = Json::parse(o.out);
    return std::pair(int(json["samples"]), int(json["classes"]));
  };
  EXPECT_EQ(planned(""), std::pair(3, 2)) << "train and test";
  EXPECT_EQ(planned("--split train"), std::pair(2, 2)) << "cat and dog";
  EXPECT_EQ(planned("--split test"), std::pair(1, 1));
  EXPECT_EQ(planned("--kind flat"), std::pair(3, 0));
}

TEST(ExtractOptions, FactorsOfAMeanOverAllTokensAreRefusedWithTheReason) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 3);
  const Outcome o = run_fungi("extract " + (folder / "data").string() +
                              " -m " FUNGI_GOLDEN_DIR "/backbone/timm_vit_avg --keep-factors -o " +
                              (folder / "s").string());
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("a mean over all of them"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("leave --keep-factors out"), std::string::npos) << o.err;
}

TEST(ExtractOptions, AFamilyThatWasStatedIsNotSaidToComeFromTheFilesName) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 3);
  fs::copy(FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors", folder / "m.safetensors");
  const auto notes = [&](const std::string& more) {
    fs::remove_all(folder / "s");
    const Outcome o = run_fungi(
        "extract " + (folder / "data").string() + " -m " + (folder / "m.safetensors").string() +
        " --set heads=4 --objectives none --json -o " + (folder / "s").string() + " " + more);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  };
  EXPECT_NE(notes("").find("its evaluation transform"), std::string::npos);
  EXPECT_EQ(notes("--set family=mae").find("its evaluation transform"), std::string::npos);
}

TEST(ExtractOptions, ARepeatedCommandTouchesNoFile) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 9);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "s")).status, 0);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "s"))
    if (entry.is_regular_file()) fs::last_write_time(entry.path(), long_ago), ++files;
  ASSERT_GT(files, 5u);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "s")).status, 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder / "s")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(fs::last_write_time(entry.path()), long_ago) << entry.path();
  }
}

// The first signal finishes the samples at hand, the second does not wait for them. Wide heads make
// samples slow; where the machine was quicker than the second signal, they are made wider.
TEST(ExtractOptions, ASecondSignalStopsAtOnce) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 256);
  test::write_file(folder / "twice.sh",
                   "d=$(dirname \"$0\"); \"$@\" 2>\"$d/said\" & p=$!\n"
                   "until [ -e \"$d/s/.lock\" ] || ! kill -0 $p; do sleep 0.01; done\n"
                   "sleep 0.3; kill -TERM $p\n"
                   "until grep -q 'at hand' \"$d/said\" || ! kill -0 $p; do sleep 0.01; done\n"
                   "kill -TERM $p; wait $p\n");
  std::string text;
  for (const char* width : {"50000", "200000", "800000"}) {
    fs::remove_all(folder / "s");
    const Outcome o = run_fungi(
        test::extract(folder / "data", folder / "s", "",
                      std::string("--objectives dino:local_crops=2,width=") + width + " "),
        "bash '" + (folder / "twice.sh").string() + "'");
    text = test::read_file(folder / "said");
    if (text.find("repeat the command to go on") != std::string::npos) continue;
    ASSERT_EQ(o.status, 130) << text;
    ASSERT_NE(text.find("Ctrl-C again stops at once"), std::string::npos) << text;
    return;
  }
  FAIL() << "the samples at hand were always finished: " << text;
}

}  // namespace
}  // namespace fungi
