// SPDX-License-Identifier: Apache-2.0
// fungi reproduce audio: ESC-50 as its authors pack it and an SSAST, as the verbs run them.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "tests/app/reproduce.h"
#include "tests/input/wav_writer.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::json;
using test::reason_for;
using test::reproduce;
using test::row_of;
using test::run_fungi;

// Pre-trained by patches; its width is not the paper's.
void write_ssast(const test::TemporaryFolder& folder) {
  test::TinyCheckpoint c = test::tiny_timm(514, 16, "module.v.");
  c.shapes["module.v.patch_embed.proj.weight"] = {test::kTimmWidth, 1, 16, 16};
  c.shapes["module.v.dist_token"] = {1, 1, test::kTimmWidth};
  c.shapes["module.p_input_tdim"] = {1};
  c.write(folder);
}

// Four classes of hums, five clips of each for training and one for testing.
void write_esc50(const fs::path& to) {
  fs::create_directories(to / "meta");
  fs::create_directories(to / "audio");
  std::ofstream list(to / "meta/esc50.csv");
  list << "filename,fold,target,category,esc10,src_file,take\n";
  for (int target = 0; target < 4; ++target)
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("{}-{}.wav", target, i);
      list << fmt::format("{},{},{},hum{},False,{},A\n", name, i == 5 ? 1 : 2 + i % 4, target,
                          target, i);
      std::vector<int16_t> samples(8000);
      for (size_t n = 0; n < samples.size(); ++n)
        samples[n] = int16_t(8000 * std::sin(double(n) * (0.05 + 0.1 * target + 0.004 * i)));
      const std::vector<uint8_t> bytes = test::wav({}, samples);
      std::ofstream(to / "audio" / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    }
}

TEST(ReproduceAudio, SaysWhatItNeeds) {
  const json table = reproduce("audio");
  EXPECT_EQ(table["rows"].size(), 16u);
  EXPECT_EQ(row_of(table, "ssast-b16", "esc50", "full", "embedding+kl")["paper"], 47.0);
  EXPECT_EQ(row_of(table, "ssast-b16", "speechcommands", "5-shot", "embedding")["paper"], 5.3);
  EXPECT_NE(reason_for(table, "ssast-b16").find("SSAST-Base-Patch-400.pth"), std::string::npos);
}

TEST(ReproduceAudio, ComputesWhatIsThereAsTheVerbsDo) {
  const test::TemporaryFolder folder, model;
  write_ssast(model);
  write_esc50(folder / "data/ESC-50-master");
  const std::string weights = (model / "model.safetensors").string();
  const json table = reproduce("audio --data " + (folder / "data").string() + " --work " +
                               (folder / "work").string() + " --use ssast-b16=" + weights);
  EXPECT_NE(table["notes"].dump().find("20 training and 4 test rows here, 1600 and 400 there"),
            std::string::npos)
      << table["notes"];
  EXPECT_TRUE(row_of(table, "ssast-b16", "speechcommands", "full", "embedding")["ours"].is_null());

  const std::string a = (folder / "a").string(), b = (folder / "b").string(),
                    data = (folder / "data/ESC-50-master").string();
  const std::string extract = "extract -q --preset paper -m " + weights +
                              " --objectives kl simclr --set frames=512 mean=-6.6268077 "
                              "std=5.358466 --fold ";
  const auto train = run_fungi(extract + "'!1' -o " + a + " -- " + data);
  ASSERT_EQ(train.status, 0) << train.err;
  const auto test = run_fungi(extract + "1 -o " + b + " --like " + a + " -- " + data);
  ASSERT_EQ(test.status, 0) << test.err;
  for (const char* features : {"embedding", "embedding+kl", "embedding+kl+simclr"})
    for (const auto& [setting, shots] : {std::pair("full", "0"), std::pair("5-shot", "5")}) {
      const json verb = json::parse(
          run_fungi(fmt::format("knn {} {} --json --shots {} --features {}", a, b, shots, features))
              .out)[0];
      EXPECT_DOUBLE_EQ(row_of(table, "ssast-b16", "esc50", setting, features)["ours"],
                       100 * verb["accuracy"].get<double>())
          << setting << " " << features;
    }
}

}  // namespace
}  // namespace fungi
