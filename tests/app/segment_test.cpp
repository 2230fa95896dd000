// SPDX-License-Identifier: Apache-2.0
// fungi segment as a user meets it: results, repeated and killed runs, new pictures, mistakes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fungi/input/image.h"
#include "fungi/input/mask.h"
#include "tests/app/reproduce.h"
#include "tests/support/command.h"
#include "tests/support/data.h"
#include "tests/support/kills.h"

namespace fungi {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_fungi;
using test::TemporaryFolder;

const std::string kGolden = FUNGI_GOLDEN_DIR "/segment/", kPairs = kGolden + "pairs/";
const std::string kModel =
    " -m " + kGolden + "model.safetensors --set heads=4 --set family=vit --precision f32";
const std::string kData = "segment " + kPairs + "train " + kPairs + "test";
const std::string kSmall = kData + kModel + " --size 40x56 -k 7 --memory 90";

std::string out(const TemporaryFolder& root, const std::string& name = "out") {
  return " -o '" + (root / name).string() + "'";
}

TEST(Segment, TestsAndWritesWhatItFound) {
  const TemporaryFolder root;
  const Outcome first = run_fungi(kSmall + out(root));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("embedding"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("3 test pictures, 90 patches remembered of 4 classes, k = 7"),
            std::string::npos)
      << first.out;
  for (const char* kind : {"embedding", "fungi"})
    for (const char* id : {"0", "1", "2"}) {
      const auto name = root / "out/predictions" / kind / (std::string(id) + ".png");
      const Image picture = read_image(kPairs + "test/images/" + id + ".png");
      EXPECT_EQ(read_mask(name).width, picture.width) << name;
    }
  EXPECT_NE(test::read_file(root / "out/index.html").find("Pictures that gain and lose most"),
            std::string::npos);
  // Repeated, it has nothing to do, and says the same; as JSON, too.
  const auto before = test::contents(root / "out");
  const Outcome again = run_fungi(kSmall + out(root) + " --json");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(test::contents(root / "out") == before);
  const json result = json::parse(again.out);
  ASSERT_EQ(result["results"].size(), 2u);
  EXPECT_EQ(result["results"][1]["features"], "fungi");
  EXPECT_EQ(result["results"][1]["columns"], 64);
  EXPECT_GT(result["results"][0]["miou"], 0.4);
  EXPECT_EQ(result["rows"], 90);
  EXPECT_EQ(result["results"][0]["classes"].size(), 4u);
}

TEST(Segment, NewPicturesByTheMemory) {
  const TemporaryFolder root;
  ASSERT_EQ(run_fungi(kSmall + out(root) + " --no-page").status, 0);
  EXPECT_FALSE(std::filesystem::exists(root / "out/index.html"));
  const std::string by =
      "segment --bank '" + (root / "out/bank").string() + "' " + kPairs + "test/images/1.png";
  const Outcome one =
      run_fungi(by + out(root, "m.png") + " --colours '" + (root / "c.png").string() + "'");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find(" %"), std::string::npos) << one.out;
  EXPECT_EQ(read_mask(root / "m.png").values,
            read_mask(root / "out/predictions/fungi/1.png").values);
  EXPECT_EQ(read_image(root / "c.png").width, read_mask(root / "m.png").width);
  const Outcome plain = run_fungi(by + out(root, "e.png") + " --kind embedding --json");
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(read_mask(root / "e.png").values,
            read_mask(root / "out/predictions/embedding/1.png").values);
  EXPECT_EQ(json::parse(plain.out).size(), 1u);
  // Several, one of which is broken.
  const auto broken = root.write("broken.png", "no picture");
  const Outcome many = run_fungi(by + " '" + broken.string() + "' " + kPairs + "test/images/2.png" +
                                 out(root, "many"));
  EXPECT_EQ(many.status, 3) << many.err;
  EXPECT_TRUE(std::filesystem::exists(root / "many/1.png"));
  EXPECT_TRUE(std::filesystem::exists(root / "many/2.png"));
  EXPECT_FALSE(std::filesystem::exists(root / "many/broken.png"));
}

TEST(Segment, KilledRunsGoOn) {
  const TemporaryFolder root;
  ASSERT_EQ(run_fungi(kSmall + out(root, "whole")).status, 0);
  const auto whole = test::contents(root / "whole");
  size_t killed = 0;
  for (size_t files = 1; files < 20; files += 3) {
    const auto folder = root / std::to_string(files);
    killed += test::kill_at(kSmall + " -o '" + folder.string() + "'", folder, files);
    const Outcome end = run_fungi(kSmall + " -o '" + folder.string() + "'");
    ASSERT_EQ(end.status, 0) << end.err;
    auto found = test::contents(folder);
    std::erase_if(found, [](const auto& one) { return one.first.ends_with(".tmp"); });
    EXPECT_TRUE(found == whole) << files;
  }
  EXPECT_GT(killed, 0u);
}

TEST(Segment, MistakesAreSaid) {
  const TemporaryFolder root;
  const auto wrong = [&](const std::string& arguments, int status, const std::string& part) {
    const Outcome o = run_fungi(arguments + out(root, "wrong"));
    EXPECT_EQ(o.status, status) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << arguments << "\n" << o.err;
  };
  wrong("segment " + kPairs + "train" + kModel, 2, "expected two data sets, found 1");
  wrong(kData, 2, "--model");
  wrong(kSmall + " --kind fungi", 2, "it needs --bank");
  wrong(kData + kModel + " --size 40x", 2, "expected a side such as 512");
  wrong(kData + kModel + " --objectives simclr", 2, "expected patch_simclr, kl, dino or none");
  wrong(kData + kModel + " --size 41", 1, "41");
  wrong(kSmall + " --images 9", 1, "asked for 9 of 5 pictures");
  wrong(kData + kModel + " --size 40x56 --memory 90 -k 91", 1, "ask for fewer with -k");
  wrong("segment --bank '" + (root / "none").string() + "' x.png", 1, "there is no memory");
  wrong("segment --bank x y.png -k 3", 2, "was decided when the memory was made");
  const auto names = root.write("names.txt", "a\nb\n");
  const Outcome odd =
      run_fungi(kSmall + out(root, "odd") + " --class-names '" + names.string() + "'");
  EXPECT_EQ(odd.status, 1);
  EXPECT_NE(odd.err.find("expected a class of 0 to 1, or 255"), std::string::npos) << odd.err;
  EXPECT_NE(odd.err.find("--class-names"), std::string::npos) << odd.err;
}

TEST(Segment, BrokenPicturesEndWithAStatusOfTheirOwn) {
  const TemporaryFolder root;
  std::filesystem::copy(kPairs, root / "pairs", std::filesystem::copy_options::recursive);
  test::write_file(root / "pairs/train/masks/1.png", "no mask");
  const std::string pairs =
      "'" + (root / "pairs/train").string() + "' '" + (root / "pairs/test").string() + "'";
  const Outcome o = run_fungi(
      "segment " + pairs + kModel + " --size 40x56 -k 7 --memory 90" + " --class-names '" +
      root.write("n.txt", "ground\nred\ngreen\nblue\n").string() + "'" + out(root));
  EXPECT_EQ(o.status, 3) << o.err;
  EXPECT_NE(o.err.find("training picture failed: 1: "), std::string::npos) << o.err;
}

TEST(Segment, ThePaperTablesBesideOurs) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "voc");
  std::filesystem::copy(kPairs + "train", root / "voc/train",
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy(kPairs + "test", root / "voc/val",
                        std::filesystem::copy_options::recursive);
  const auto pictures = [&](const std::string& split) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kPairs + split + "/images"))
      count += entry.is_regular_file();
    return count;
  };
  const json bare = test::reproduce("segmentation");
  EXPECT_EQ(bare["protocol"], "segmentation");
  EXPECT_EQ(test::row_of(bare, "dino-b16", "voc", "10240000", "fungi")["paper"], 67.0);
  const auto model = test::data_folder() / "weights/deit_tiny_patch16_224.safetensors";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << test::missing_data(model);
  const std::string use =
      " --data '" + root.path().string() + "' --use dino-s16='" + model.string() + "'";
  size_t planned = 0;  // three sizes of memory: support, memory and test of each
  for (const json& pair : test::reproduce("segmentation --plan" + use))
    if (pair["backbone"] == "dino-s16" && pair["data"] == "voc") {
      EXPECT_EQ(pair["forward_passes"], 3 * (2 * pictures("train") + pictures("test")));
      EXPECT_GT(pair["hours"].get<double>(), 0);
      ++planned;
    }
  EXPECT_EQ(planned, 1u);
  const json found =
      test::reproduce("segmentation-few --data '" + root.path().string() + "' --work '" +
                      (root / "work").string() + "' --use dino-s16='" + model.string() + "'");
  for (const char* features : {"embedding", "fungi"}) {
    const json row = test::row_of(found, "dino-s16", "voc", "1/64", features);
    EXPECT_GT(row["ours"], 10) << found;
  }
}

}  // namespace
}  // namespace fungi
