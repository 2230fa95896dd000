// SPDX-License-Identifier: Apache-2.0
// Sounds as a user has them: files in folders, a list with folds, windows, broken ones among them,
// queries and a report.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/base/random.h"
#include "fungi/input/sound.h"
#include "tests/input/wav_writer.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::run_fungi;

const std::string kModel = FUNGI_GOLDEN_DIR "/backbone/hf_ast";

class SoundsOfAUser : public testing::Test {
 protected:
  void SetUp() override {
    if (sound_formats().empty()) GTEST_SKIP() << "built without libsndfile";
    std::string list = "file,label,fold\n";
    for (const char* name : {"high", "low"})
      for (int i = 0; i < 8; ++i) {
        const std::string file = std::string(name) + "/" + std::to_string(i) + ".wav";
        folder_.write("clips/" + file, tone(name[0] == 'h' ? 2600 : 240, i));
        list += file + "," + name + "," + std::to_string(1 + i % 4) + "\n";
      }
    folder_.write("clips/list.csv", list);
  }
  static std::vector<uint8_t> tone(double hertz, int seed, uint32_t rate = 16000,
                                   double seconds = 0.25) {
    std::vector<int16_t> samples(size_t(seconds * rate));
    const RandomStream random(uint64_t(seed), "tone");
    for (size_t n = 0; n < samples.size(); ++n)
      samples[n] = int16_t(9000 * std::sin(6.2832 * (hertz + 20 * seed) * double(n) / rate) +
                           900 * (random.uniform(n) - 0.5));
    return test::wav({.rate = rate}, samples);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Outcome extract(const std::string& data, const std::string& store, const std::string& more) const {
    return run_fungi("extract " + at(data) + " -o " + at(store) + " " + more);
  }
  const std::string from_ = "-m " + kModel +
                            " --objectives kl:width=16 dino:width=16,local_views=2 "
                            "simclr:width=8,views=4,negatives=3 ";
  test::TemporaryFolder folder_;
};

TEST_F(SoundsOfAUser, FromAListToNeighboursAndAReport) {
  ASSERT_EQ(extract("clips/list.csv", "train", from_ + "--fold '!1'").status, 0);
  Outcome o = extract("clips/list.csv", "test", "--like " + at("train") + " --fold 1 --json");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["rows"], 4);
  o = run_fungi("knn " + at("train") + " " + at("test") + " -k 3 --json");
  ASSERT_EQ(o.status, 0) << o.err;
  o = run_fungi("search " + at("train") + " --audio " + at("clips/high/1.wav") + " " +
                at("clips/list.csv") + " -k 3 --json");
  EXPECT_EQ(o.status, 3) << o.err;  // the list is no sound
  const json found = json::parse(o.out)["queries"];
  EXPECT_EQ(found[0]["audio"], at("clips/high/1.wav"));
  EXPECT_EQ(found[0]["neighbours"][0]["id"], "high/1.wav");
  EXPECT_LT(found[0]["neighbours"][0]["distance"].get<double>(), 1e-6);
  EXPECT_EQ(found[0]["neighbours"][1]["class"], "high");
  EXPECT_NE(found[1]["error"].get<std::string>().find("expected a sound"), std::string::npos);
  o = run_fungi("report " + at("train") + " " + at("test") + " -k 3 -o " + at("page.html") +
                " --train-pictures " + at("clips/list.csv") + " --test-pictures " +
                at("clips/list.csv"));
  ASSERT_EQ(o.status, 0) << o.err;
  const std::string page = test::read_file(folder_ / "page.html");
  EXPECT_NE(page.find("<audio id=clip0 "), std::string::npos);
  EXPECT_NE(page.find("data-play=clip0"), std::string::npos);
  EXPECT_EQ(page.find("src=\"data:image/webp;base64,\""), std::string::npos) << "an empty picture";
}

TEST_F(SoundsOfAUser, BrokenOnesAreRecorded) {
  std::vector<uint8_t> whole = tone(500, 3), half = whole;
  half.resize(half.size() / 2);
  folder_.write("bad/cut.wav", half);
  folder_.write("bad/lies.wav", test::wav({.data_bytes = 100000}, {1, 2, 3}));
  folder_.write("bad/empty.wav", test::wav({}, {}));
  folder_.write("bad/nothing.wav", "");
  folder_.write("bad/picture.wav", "\x89PNG\r\n\x1a\n and so on");
  folder_.write("bad/short.wav", tone(500, 3, 16000, 0.01));
  folder_.write("bad/rate8.wav", tone(500, 3, 8000));
  folder_.write("bad/good.wav", whole);
  const Outcome o = extract("bad", "store", "-m " + kModel + " --objectives none");
  EXPECT_EQ(o.status, 3) << o.err;
  EXPECT_NE(o.out.find("2 rows"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("1 samples have another rate than the model's and were resampled"),
            std::string::npos)
      << o.err;
  std::map<std::string, std::string> reasons;
  std::istringstream lines(test::read_file(folder_ / "store/failed.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json failed = json::parse(line);
    reasons[failed["id"]] = failed["reason"];
  }
  for (const auto& [id, part] : std::map<std::string, std::string>{
           {"cut.wav", "cut off"},
           {"lies.wav", "cut off"},
           {"empty.wav", "no samples"},
           {"nothing.wav", "an empty file"},
           {"picture.wav", "a PNG picture"},
           {"short.wav", "less than one window"}})
    EXPECT_NE(reasons[id].find(part), std::string::npos) << id << ": " << reasons[id];
  const Outcome again = extract("bad", "store",
                                "-m " + kModel +
                                    " --objectives none --allow-truncated --retry-failed");
  EXPECT_NE(again.out.find("3 rows"), std::string::npos) << again.out << again.err;
}

// Whatever interrupts or divides the work, the rows are the same.
TEST_F(SoundsOfAUser, WindowsAreRowsOfTheSameBytes) {
  const std::string more = from_ + "--window 0.1 --hop 0.05 -q ";
  ASSERT_EQ(extract("clips/high", "whole", more + "-j 2").status, 0);
  ASSERT_EQ(extract("clips/high", "parts", more + "-j 1 --limit 5").status, 0);
  ASSERT_EQ(extract("clips/high", "parts", more + "-j 3").status, 0);
  const auto rows = [&](const std::string& store) {
    const Outcome o = run_fungi("export " + at(store) + " -o " + at(store + ".npy"));
    EXPECT_EQ(o.status, 0) << o.err;
    return test::read_file(folder_ / (store + ".npy"));
  };
  EXPECT_EQ(rows("whole"), rows("parts"));
  const Outcome o = run_fungi("search " + at("whole") + " --row 3.wav@0.05 -k 1 --json");
  ASSERT_EQ(o.status, 0) << o.err;
}

// Two hours of two channels at 48 kHz: 1.4 GB, of which the model listens to a moment.
TEST_F(SoundsOfAUser, LongFilesNeedLittleMemory) {
  const uint32_t bytes = 2 * 3600 * 48000u * 4;
  const auto header = test::wav({.rate = 48000, .channels = 2, .data_bytes = bytes}, {});
  folder_.write("long/two-hours.wav", header);
  fs::resize_file(folder_ / "long/two-hours.wav", header.size() + bytes);
  for (const std::string& window : {std::string(), std::string("--window 10 --hop 1000")}) {
    const Outcome o = extract("long", window.empty() ? "one" : "many",
                              "-m " + kModel + " --objectives none --json " + window);
    ASSERT_EQ(o.status, 0) << o.err;
    const json result = json::parse(o.out);
    EXPECT_EQ(result["rows"], window.empty() ? 1 : 8);
    EXPECT_LT(result["peak_rss_mb"], 300);
  }
}

TEST_F(SoundsOfAUser, StatisticsAreMeasuredOnceAndKept) {
  const std::string more = "-m " + kModel + " --objectives none --statistics measure ";
  Outcome o = extract("clips/low", "store", more);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.err.find("measured on 8 sounds"), std::string::npos) << o.err;
  const json manifest = json::parse(test::read_file(folder_ / "store/manifest.json"));
  const std::string text = manifest.dump();
  EXPECT_NE(text.find("\"mean\""), std::string::npos);
  folder_.write("clips/low/9.wav", tone(4000, 3));  // the store goes on as it began
  o = extract("clips/low", "store", more);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("9 rows"), std::string::npos) << o.out;
  o = run_fungi("extract " + at("clips/low") + " -o " + at("none") + " -m " FUNGI_GOLDEN_DIR
                "/backbone/whisper --objectives none --statistics measure");
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("--statistics"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace fungi
