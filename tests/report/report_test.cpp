// SPDX-License-Identifier: Apache-2.0
// The page: well-formed, self-contained, with the numbers of the evaluation; small pieces against known values.
#include "fungi/report/report.h"

#include <gtest/gtest.h>

#include <regex>

#include "fungi/report/html.h"
#include "tests/support/command.h"

namespace fungi {
namespace {

std::string encode(const std::string& text) { return html::base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }

TEST(Html, Base64AsInTheStandard) {  // RFC 4648
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

TEST(Html, EscapesText) { EXPECT_EQ(html::escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;"); }

TEST(Report, IsOneSelfContainedPage) {
  const test::TemporaryFolder folder;
  const std::string model = " -m " FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors --set heads=4 --objectives kl dino:width=16 ";
  const std::string data = FUNGI_SOURCE_DIR "/demo/images/test", train = (folder / "a").string(), test = (folder / "b").string();
  ASSERT_EQ(test::run_fungi("extract " + data + model + "-o " + train).status, 0);
  ASSERT_EQ(test::run_fungi("extract " + data + model + "-o " + test + " --limit 40 --like " + train).status, 0);
  const std::string page_file = (folder / "page.html").string();
  const auto outcome = test::run_fungi("report " + train + " " + test + " -k 3 -o " + page_file + " --train-pictures " + data + " --test-pictures " + data);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string page = test::read_text(page_file);
  for (const char* section : {"Nearest-neighbour accuracy", "Change per class", "With few labels", "Neighbours", "Similarity of the blocks", "Map of the test rows", "Settings", "embedding+kl+dino"})
    EXPECT_NE(page.find(section), std::string::npos) << section;
  EXPECT_EQ(page.find("http"), std::string::npos) << "nothing may come from outside";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  for (const char* tag : {"div", "svg", "table", "figure", "p", "h2", "pre"}) {  // every opened element is closed
    const auto count = [&](const std::string& pattern) { const std::regex r(pattern); return std::distance(std::sregex_iterator(page.begin(), page.end(), r), std::sregex_iterator()); };
    EXPECT_EQ(count(std::string("<") + tag + "[ >]"), count(std::string("</") + tag + ">")) << tag;
  }
}

}  // namespace
}  // namespace fungi
