// SPDX-License-Identifier: Apache-2.0
// fungi prompts, the whole way: requests, a server that answers and fails as servers do, replies,
// their score.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "fungi/prompt/http.h"
#include "tests/app/language_model.h"
#include "tests/support/texts.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::read_file;
using test::run_fungi;

using test::json_lines;
using test::LanguageModel;
using test::sleep_a_little;

const char* const kNoCurl =
    "this build has no libcurl: install libcurl4-openssl-dev and configure again";

class PromptsTest : public ::testing::Test {
 protected:
  static constexpr size_t kTrain = 60, kTest = 48;
  static void SetUpTestSuite() {
    stores_ = std::make_unique<test::TemporaryFolder>();
    test::extract_questions(*stores_, kTrain, kTest);
  }
  static void TearDownTestSuite() { stores_.reset(); }

  static std::string at(const char* name) { return (*stores_ / name).string(); }
  static std::string both() { return "prompts " + at("train") + " " + at("test") + " "; }
  std::string making(const std::string& more = "") const {
    return both() + "--train-data " + at("train.tsv") + " --test-data " + at("test.tsv") + " -o " +
           prompts().string() + " " + more;
  }
  std::string asking(const LanguageModel& model, const std::string& more = "") const {
    return making("--model some-model --endpoint " + model.endpoint() + " --replies " +
                  replies().string() + " " + more);
  }
  json scored(const std::string& more = "") const {
    return json::parse(
        run_fungi(both() + "--json --score " + replies().string() + " " + more).out)[0];
  }
  fs::path prompts() const { return folder_ / "prompts.jsonl"; }
  fs::path replies() const { return folder_ / "replies.jsonl"; }

  static std::unique_ptr<test::TemporaryFolder> stores_;
  test::TemporaryFolder folder_;
};
std::unique_ptr<test::TemporaryFolder> PromptsTest::stores_;

// What a nearest neighbour says is what a language model says that repeats its first example.
double nearest_accuracy(const std::string& train, const std::string& test) {
  return json::parse(run_fungi("knn " + train + " " + test + " -k 1 --features embedding+kl --json")
                         .out)[0]["accuracy"];
}

TEST_F(PromptsTest, RequestsHaveTheShapeOfBatchFiles) {
  const auto made = run_fungi(making("-k 3"));
  ASSERT_EQ(made.status, 0) << made.err;
  const std::vector<json> lines = json_lines(prompts());
  ASSERT_EQ(lines.size(), kTest);
  for (size_t i = 0; i < kTest; ++i) {
    EXPECT_EQ(lines[i]["custom_id"], std::to_string(i + 1));
    EXPECT_EQ(lines[i]["method"], "POST");
    EXPECT_EQ(lines[i]["url"], "/v1/chat/completions");
    EXPECT_EQ(lines[i]["body"]["temperature"], 0);
    EXPECT_EQ(lines[i]["body"]["messages"].size(), 1u);
    EXPECT_EQ(lines[i]["body"]["messages"][0]["role"], "user");
  }
  // The examples are those that a search finds, with their labels.
  for (const size_t row : {0, 5, 47}) {
    const std::string line = test::questions(1, kTrain + row),
                      text = line.substr(line.find('\t') + 1, line.size() - line.find('\t') - 2);
    const json found = json::parse(run_fungi("search " + at("train") +
                                             " -k 3 --json --features embedding+kl --data " +
                                             at("train.tsv") + " --text '" + text + "'")
                                       .out)["queries"][0]["neighbours"];
    std::string examples;
    for (const json& one : found)
      examples += fmt::format("text: {}\nlabel: {}\n", one["text"].get<std::string>(),
                              one["class"].get<std::string>());
    const std::string prompt = lines[row]["body"]["messages"][0]["content"];
    EXPECT_NE(prompt.find("labels:\n\n" + examples + "\n"), std::string::npos)
        << prompt << examples;
    EXPECT_TRUE(prompt.ends_with("text: " + text + "\nlabel:")) << prompt;
  }
  const std::string first = read_file(prompts());
  EXPECT_EQ(run_fungi(making("-k 3 -j 1")).status, 0);
  EXPECT_EQ(read_file(prompts()), first);
  ASSERT_EQ(run_fungi(making("-k 3 --limit 5")).status, 0);
  EXPECT_EQ(read_file(prompts()), first.substr(0, read_file(prompts()).size()));
  EXPECT_EQ(json_lines(prompts()).size(), 5u);
}

TEST_F(PromptsTest, EachRequestIsAnsweredOnceWhateverAServerDoes) {
  if (!have_http()) GTEST_SKIP() << kNoCurl;
  const LanguageModel model("bad");
  const auto asked = run_fungi(asking(model, "--parallel 6 --timeout 3 --json"));
  ASSERT_EQ(asked.status, 0) << asked.err << asked.out;
  const json told = json::parse(asked.out);
  EXPECT_EQ(told["answered"], kTest);
  EXPECT_EQ(told["failed"], 0u);

  std::map<std::string, size_t> answers;
  std::map<std::string, size_t> fates;
  std::map<std::string, double> limited;  // until when nobody should ask
  for (const json& line : model.log()) {
    EXPECT_EQ(line["path"], "/v1/chat/completions");
    ++fates[line["fate"]];
    answers[line["prompt"]] += line["fate"] == "none";
    if (line["fate"] == "429") limited[line["prompt"]] = line["time"].get<double>() + 1;
    if (line["fate"] == "none" && limited.count(line["prompt"])) {
      EXPECT_GE(line["time"].get<double>(), limited[line["prompt"]] - 0.01);
    }
  }
  EXPECT_EQ(fates.size(), 8u) << "the texts are to meet each trouble";
  EXPECT_EQ(answers.size(), kTest);
  for (const auto& [prompt, count] : answers) EXPECT_EQ(count, 1u) << prompt;

  const std::vector<json> lines = json_lines(replies());
  ASSERT_EQ(lines.size(), kTest);
  for (const json& line : lines) EXPECT_EQ(line["response"]["body"]["model"], "some-model");
  const json score = scored();
  EXPECT_EQ(score["accuracy"], nearest_accuracy(at("train"), at("test")));
  EXPECT_EQ(score["no_label"], 0u);
  EXPECT_EQ(score["missing"], 0u);

  // All are answered: nothing is asked again.
  const size_t before = model.log().size();
  EXPECT_EQ(run_fungi(asking(model)).status, 0);
  EXPECT_EQ(model.log().size(), before);
  // Other requests are none of these.
  const auto other = run_fungi(asking(model, "-k 2"));
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("another request"), std::string::npos) << other.err;
  EXPECT_EQ(model.log().size(), before);
}

// SIGKILL in the middle, twice, with half a line at the end; then Ctrl-C; then to the end.
TEST_F(PromptsTest, AKilledRunGoesOn) {
  if (!have_http()) GTEST_SKIP() << kNoCurl;
  const LanguageModel model("slow");
  const auto run_until = [&](size_t answers, int signal) {
    const std::string command =
        "exec '" FUNGI_BINARY "' " + asking(model, "--parallel 2") + " >/dev/null 2>&1";
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    const auto count = [&] {
      const std::string text = fs::exists(replies()) ? read_file(replies()) : "";
      return size_t(std::count(text.begin(), text.end(), '\n'));
    };
    int status = 0;
    while (count() < answers && ::waitpid(child, &status, WNOHANG) == 0) sleep_a_little();
    ::kill(child, signal);
    ::waitpid(child, &status, 0);
    EXPECT_LT(count(), kTest) << "the signal came too late";
    return status;
  };
  EXPECT_TRUE(WIFSIGNALED(run_until(5, SIGKILL)));
  std::ofstream(replies(), std::ios::app) << R"({"custom_id": "48", "resp)";
  EXPECT_TRUE(WIFSIGNALED(run_until(10, SIGKILL)));
  const int interrupted = run_until(16, SIGINT);
  EXPECT_TRUE(WIFEXITED(interrupted) && WEXITSTATUS(interrupted) == 130) << interrupted;
  // What was on its way was waited for, and is paid once: a kill costs those two alone.
  EXPECT_LE(model.log().size(), json_lines(replies()).size() + 2 * 2);
  EXPECT_EQ(run_fungi(asking(model)).status, 0);
  const std::vector<json> lines = json_lines(replies());
  std::set<std::string> ids;
  for (const json& line : lines) ids.insert(line["custom_id"]);
  EXPECT_EQ(lines.size(), kTest);
  EXPECT_EQ(ids.size(), kTest);
  EXPECT_EQ(scored()["accuracy"], nearest_accuracy(at("train"), at("test")));
}

TEST_F(PromptsTest, TheKeyIsShownToTheServerAlone) {
  if (!have_http()) GTEST_SKIP() << kNoCurl;
  const std::string key = "sk-secret-0123456789";
  const auto nowhere = [&](const test::Outcome& o) {
    EXPECT_EQ((o.out + o.err).find(key), std::string::npos) << o.out << o.err;
    for (const auto& [name, bytes] : test::contents(folder_.path()))
      EXPECT_EQ(bytes.find(key), std::string::npos) << name;
  };
  {
    const LanguageModel model("good");
    nowhere(run_fungi(asking(model, "--limit 3"), "OPENAI_API_KEY=" + key));
    ASSERT_EQ(model.log().size(), 3u);
    for (const json& line : model.log()) EXPECT_EQ(line["key"], "Bearer " + key);
    fs::remove(replies());
    run_fungi(asking(model, "--limit 1 --key-variable none"), "OPENAI_API_KEY=" + key);
    EXPECT_EQ(model.log().back()["key"], "");
    fs::remove(replies());
    run_fungi(asking(model, "--limit 1 --key-variable OTHER"), "OTHER=other OPENAI_API_KEY=" + key);
    EXPECT_EQ(model.log().back()["key"], "Bearer other");
  }
  fs::remove(replies());
  for (const char* status : {"401", "400", "404", "302"}) {
    const LanguageModel model(status);
    const auto refused = run_fungi(asking(model, "--parallel 1"), "OPENAI_API_KEY=" + key);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find(std::string("status ") + status + ": no: Bearer [key]"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("hint"), std::string::npos) << refused.err;
    EXPECT_LE(model.log().size(), 3u) << "all would be refused";
    nowhere(refused);
  }
  // Nothing is sent in the clear to anybody else, and nothing at all without a key that was named.
  const auto clear =
      run_fungi(making("--model m --endpoint http://example.invalid/v1"), "OPENAI_API_KEY=" + key);
  EXPECT_EQ(clear.status, 1);
  EXPECT_NE(clear.err.find("--key-over-http"), std::string::npos) << clear.err;
  nowhere(clear);
  const auto unset =
      run_fungi(making("--model m --endpoint http://localhost:1/v1 --key-variable NOT_SET"));
  EXPECT_EQ(unset.status, 1);
  EXPECT_NE(unset.err.find("NOT_SET is not set"), std::string::npos) << unset.err;
}

TEST_F(PromptsTest, RandomExamplesAreABaseline) {
  const auto random = [&](const std::string& more) {
    EXPECT_EQ(run_fungi(making("-k 4 --random " + more)).status, 0);
    return read_file(prompts());
  };
  const std::string first = random("");
  EXPECT_EQ(random("-j 1"), first);
  EXPECT_NE(random("--seed 7"), first);
  if (!have_http()) GTEST_SKIP() << kNoCurl;
  const LanguageModel model("good");
  ASSERT_EQ(run_fungi(asking(model, "--random")).status, 0);
  const fs::path baseline = folder_ / "baseline.jsonl";
  fs::rename(replies(), baseline);
  ASSERT_EQ(run_fungi(asking(model)).status, 0);
  const json both_scores = json::parse(run_fungi(both() + "--json --score " + replies().string() +
                                                 " --baseline " + baseline.string())
                                           .out);
  ASSERT_EQ(both_scores.size(), 2u);
  EXPECT_EQ(both_scores[0]["accuracy"], nearest_accuracy(at("train"), at("test")));
  EXPECT_LT(both_scores[1]["accuracy"], both_scores[0]["accuracy"]);
  EXPECT_EQ(both_scores[1]["classes"].size(), 3u);
  const auto table =
      run_fungi(both() + "--score " + replies().string() + " --baseline " + baseline.string());
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("baseline %"), std::string::npos) << table.out;
}

TEST_F(PromptsTest, BadInputIsTold) {
  const auto refuses = [&](const std::string& command, int status,
                           std::initializer_list<std::string> parts) {
    const auto o = run_fungi(command);
    EXPECT_EQ(o.status, status) << o.err;
    for (const std::string& part : parts) EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  refuses(both(), 2, {"--train-data", "hold no texts"});
  refuses(both() + "--score x -k 3", 2, {"-k is about making requests"});
  refuses(making("--endpoint http://localhost:1/v1"), 2, {"--model"});
  refuses(making("--random --features kl"), 2, {"--random"});
  refuses(making("--model m --endpoint http://localhost:1/v1 --replies " +
                 (folder_ / "x/../prompts.jsonl").string()),
          1, {"same file", "--replies"});
  refuses(making("-k 61"), 1, {"from 1 to 60 examples, found 61", "-k"});
  refuses(both() + "--train-data nowhere --test-data " + at("test.tsv"), 1, {"nowhere"});
  refuses(both() + "--train-data " + at("test.tsv") + " --test-data " + at("test.tsv"), 1,
          {"train", "--train-data"});
  // Another text under the same id.
  const fs::path edited = folder_.write("edited.tsv", "time\twhen is it ?\n" + test::questions(60));
  refuses(both() + "--train-data " + edited.string() + " --test-data " + at("test.tsv"), 1,
          {"is not the one that was extracted", "repeat the extraction"});
  // A store of pictures.
  const std::string pictures = (folder_ / "pictures").string();
  ASSERT_EQ(run_fungi("extract -q " FUNGI_SOURCE_DIR "/demo/images/test -m " FUNGI_SOURCE_DIR
                      "/demo/model.safetensors --objectives none --limit 30 -o " +
                      pictures)
                .status,
            0);
  refuses("prompts " + pictures + " " + pictures + " --train-data " + at("train.tsv") +
              " --test-data " + at("train.tsv"),
          1, {pictures, "expected a store of texts, found one of images"});
  // A class that the training store lacks, in the test set.
  const std::string odd = (folder_ / "odd").string();
  folder_.write("odd.tsv", test::questions(5) + "reason\twhy is my card lost ?\n");
  ASSERT_EQ(run_fungi("extract -q " + (folder_ / "odd.tsv").string() + " -o " + odd + " --like " +
                      at("train"))
                .status,
            0);
  refuses("prompts " + at("train") + " " + odd + " --train-data " + at("train.tsv") +
              " --test-data " + (folder_ / "odd.tsv").string(),
          1, {"reason"});
  refuses(making("--template " + folder_.write("t", "{labels}\n\nnow {txet}\n").string()), 1,
          {"line 3", "{txet}", "{examples}"});
  refuses(making("--label-names " + folder_.write("n", "place\tA\nperson\tA\ntime\tB\n").string()),
          1, {"same name 'A'"});
  refuses(
      both() + "--score " + folder_.write("r", "{\"custom_id\": \"x\", \"error\": {}}\n").string(),
      1, {"line 1", "'x'", "no row of"});
  refuses(both() + "--score " + folder_.write("r", "nonsense\n{}\n").string(), 1,
          {"line 1", "custom_id"});
}

}  // namespace
}  // namespace fungi
