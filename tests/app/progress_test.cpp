// SPDX-License-Identifier: Apache-2.0
// What a run tells while it works, on a terminal and elsewhere, and where its time went.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/command.h"
#include "tests/support/idx.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;

class ProgressLine : public testing::Test {
 protected:
  void SetUp() override { test::write_idx(folder_ / "data", 12); }
  std::string extract(const std::string& store) const {
    return fmt::format(
        "extract {} -m {}/backbone/timm_vit/model.safetensors --set heads=4 --objectives "
        "kl:width=8 "
        "simclr:width=8,negatives=3 -o {}",
        (folder_ / "data").string(), FUNGI_GOLDEN_DIR, (folder_ / store).string());
  }
  // Its stderr is a terminal of its own.
  std::string on_a_terminal(const std::string& arguments, const std::string& before = "") const {
    const std::string log = (folder_ / "terminal").string(),
                      command = fmt::format("script -qec \"{} '{}' {}\" '{}' >/dev/null </dev/null",
                                            before, FUNGI_BINARY, arguments, log);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return test::read_file(log);
  }
  static bool matches(const std::string& text, const char* pattern) {
    return std::regex_search(text, std::regex(pattern));
  }
  test::TemporaryFolder folder_;
};

// Some containers and chroots have none.
bool has_terminals() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master >= 0) ::close(master);
  return master >= 0;
}
#define NEEDS_TERMINALS() \
  if (!has_terminals()) GTEST_SKIP() << "no terminal can be opened here: mount /dev/pts"

TEST_F(ProgressLine, HasRateAndRemainingTimeOnATerminal) {
  NEEDS_TERMINALS();
  const std::string shown = on_a_terminal(extract("a"));
  for (const char* pattern : {R"(\rsupport 3/3 \(100 %\), [0-9.]+/s, 0 s left)",
                              R"(\rextract [0-9]+/12 \([0-9]+ %\), [0-9]+\.[0-9]/s, [0-9]+ s left)",
                              R"(\rextract 12/12 \(100 %\), [0-9]+\.[0-9]/s, 0 s left)"})
    EXPECT_TRUE(matches(shown, pattern)) << pattern << "\n" << shown;
  EXPECT_EQ(on_a_terminal(extract("b") + " -q").find(" left"), std::string::npos);
  const Outcome elsewhere = run_fungi(extract("c"));
  EXPECT_EQ(elsewhere.err.find(" left"), std::string::npos) << elsewhere.err;
}

TEST_F(ProgressLine, TellsOfRowsThatOnlyMove) {
  NEEDS_TERMINALS();
  ASSERT_EQ(run_fungi(extract("a")).status, 0);
  std::string shown = on_a_terminal(extract("a") + " --shard 4");
  EXPECT_TRUE(matches(shown, R"(\rrewrite 0/12 \(0 %\))")) << shown;
  EXPECT_TRUE(matches(shown, R"(\rrewrite 12/12 \(100 %\), [0-9]+\.[0-9]/s, 0 s left)")) << shown;
  EXPECT_FALSE(matches(shown, R"(\rextract)")) << shown;
  EXPECT_TRUE(matches(shown, " 0 computed now")) << shown;
  test::write_idx(folder_ / "data", 14);
  shown = on_a_terminal(extract("a") + " --shard 5");
  EXPECT_TRUE(matches(shown, R"(\rrewrite 10/10 [^\n]*\n\rextract 0/2 )")) << shown;
  EXPECT_TRUE(matches(shown, R"(\rextract 2/2 \(100 %\))")) << shown;
  EXPECT_TRUE(matches(shown, " 2 computed now")) << shown;
}

TEST_F(ProgressLine, FitsTheTerminal) {
  NEEDS_TERMINALS();
  const std::string shown = on_a_terminal(extract("a"), "stty cols 20; TERM=dumb");
  EXPECT_TRUE(matches(shown, R"(\rextract 12/12 \(100)")) << shown;
  EXPECT_EQ(shown.find('\033'), std::string::npos) << "a dumb one knows no commands";
  size_t column = 0, widest = 0;  // of what is drawn: lines that begin with \r alone
  bool drawn = false;
  for (const char c : shown) {
    if (c == '\r' || c == '\n')
      column = 0, drawn = c == '\r';
    else if (drawn)
      widest = std::max(widest, ++column);
  }
  EXPECT_EQ(widest, 19u) << shown;
}

TEST_F(ProgressLine, IsNotDrawnForShortWork) {
  NEEDS_TERMINALS();
  ASSERT_EQ(run_fungi(extract("a")).status, 0);
  const std::string store = (folder_ / "a").string();
  for (const std::string& verb : {"kmeans " + store, "linear " + store + " " + store,
                                  "index " + store + " -o " + (folder_ / "i").string()}) {
    const std::string shown = on_a_terminal(verb);
    EXPECT_FALSE(matches(shown, R"([0-9] s left)")) << shown;
  }
}

TEST_F(ProgressLine, StagesStandAtTheEnd) {
  const Outcome o = run_fungi(extract("a"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(matches(
      o.err, R"(time by stage, all threads:(  [a-z0-9 ]+ [0-9]+\.[0-9] s \([0-9]+ %\))+\n)"))
      << o.err;
  const Outcome again = run_fungi(extract("a"));
  EXPECT_EQ(again.err.find("time by stage"), std::string::npos) << "nothing was computed";
}

TEST_F(ProgressLine, StagesStandInJson) {
  const Outcome o = run_fungi(extract("a") + " --json");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto result = nlohmann::json::parse(o.out);
  std::map<std::string, nlohmann::json> stages;
  for (const auto& row : result["stages"]) stages[row["name"]] = row;
  for (const char* name : {"decode", "views", "qkv", "objective", "projection"}) {
    ASSERT_TRUE(stages.contains(name)) << name << o.out;
    EXPECT_GT(stages[name]["own_seconds"], 0) << name;
    EXPECT_GT(stages[name]["calls"], 0) << name;
  }
}

}  // namespace
}  // namespace fungi
