// SPDX-License-Identifier: Apache-2.0
// What is asked again, what is given up and what ends a run, told by servers that do as they are
// told.
#include "fungi/prompt/ask.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/prompt/made_texts.h"

namespace fungi {
namespace {

using test::completion;
using test::MadeTexts;

// Answers by what it is asked and how often it was; counts.
struct Server {
  std::function<HttpReply(const std::string& text, size_t before)> answer;
  std::map<std::string, size_t> asked = {};  // by the text of the test row
  std::mutex mutex = {};

  HttpReply post(const std::string& body) {
    const std::string prompt = nlohmann::json::parse(body)["messages"][0]["content"];
    const size_t at = prompt.rfind("text: ") + 6;
    const std::string text = prompt.substr(at, prompt.rfind('\n') - at);
    size_t before = 0;
    {
      const std::lock_guard lock(mutex);
      before = asked[text]++;
    }
    return answer(text, before);
  }
  OpenSession sessions() {
    struct Session final : HttpSession {
      explicit Session(Server& to) : server(to) {}
      HttpReply post(const std::string& json) override { return server.post(json); }
      Server& server;
    };
    return [this] { return std::make_unique<Session>(*this); };
  }
  size_t total() const {
    size_t sum = 0;
    for (const auto& [text, count] : asked) sum += count;
    return sum;
  }
};

class AskTest : public ::testing::Test {
 protected:
  AskResult run(Server& server, AskOptions o = {}) {
    o.first_wait = 0.001;
    ReplyFile file(path());
    return ask(prompts_, file, server.sessions(), key_, o);
  }
  std::filesystem::path path() const { return made_.folder() / "replies.jsonl"; }
  PromptScore score() const {
    return score_replies(made_.train(), made_.test(), label_names(made_.train()), path());
  }
  static HttpReply good(const std::string& text) { return {200, completion(text)}; }

  MadeTexts made_;
  Prompts prompts_ = made_.prompts();
  ApiKey key_;
};

TEST_F(AskTest, TriesAgainWhatMayPass) {
  const std::vector<HttpReply> troubles{{0, "", "connection reset"},
                                        {500, "<html>"},
                                        {503, "", "", 0.01},
                                        {429, R"({"error": {"message": "slow down"}})"},
                                        {408, ""},
                                        {200, "{\"choices\": [{\"mess"},
                                        {200, "{}"},
                                        {200, R"({"choices": []})"},
                                        {200, R"({"choices": [{"message": {"content": 7}}]})"},
                                        {200, "\xff"}};
  for (const HttpReply& trouble : troubles) {
    std::filesystem::remove(path());
    Server server{
        [&](const std::string&, size_t before) { return before < 2 ? trouble : good("hot"); }};
    std::vector<std::string> notes;
    const AskResult result =
        run(server, {.parallel = 3, .note = [&](const std::string& n) { notes.push_back(n); }});
    EXPECT_EQ(result.answered, 4u);
    EXPECT_EQ(result.failed + result.left + result.earlier, 0u);
    EXPECT_EQ(server.asked.size(), 4u);
    EXPECT_EQ(server.total(), 12u);
    EXPECT_EQ(notes.size(), 1u) << "one is enough";
    EXPECT_EQ(read_replies(path()).replies.size(), 4u);
  }
}

TEST_F(AskTest, WaitsGrowAndAServersOwnWordCounts) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> times;
  std::mutex mutex;
  Server server{[&](const std::string&, size_t before) -> HttpReply {
    const std::lock_guard lock(mutex);
    times.push_back(Clock::now());
    if (before < 4) return {500, ""};
    return good("hot");
  }};
  ReplyFile file(path());
  Prompts one = made_.prompts({.k = 2, .limit = 1});
  ask(one, file, server.sessions(), key_, {.first_wait = 0.02, .longest_wait = 0.08});
  ASSERT_EQ(times.size(), 5u);
  const double least[] = {0.01, 0.02, 0.04, 0.04};  // half of 0.02, 0.04, 0.08 and 0.08 again
  for (size_t i = 0; i < 4; ++i)
    EXPECT_GE(std::chrono::duration<double>(times[i + 1] - times[i]).count(), least[i]);

  // One that is told to wait holds the others, too.
  std::filesystem::remove(path());
  Clock::time_point told{};
  bool too_early = false;
  Server busy{[&](const std::string&, size_t) -> HttpReply {
    const std::lock_guard lock(mutex);
    if (told == Clock::time_point{}) {
      told = Clock::now();
      return {429, "", "", 0.2};
    }
    too_early |= Clock::now() < told + std::chrono::milliseconds(190);
    return good("hot");
  }};
  EXPECT_EQ(run(busy, {.parallel = 1}).answered, 4u);
  EXPECT_FALSE(too_early);
}

TEST_F(AskTest, ARequestThatIsRefusedCostsNoOther) {
  Server server{[&](const std::string& text, size_t) -> HttpReply {
    if (text == "april") return {400, R"({"error": {"message": "too long"}})"};
    return good("mild");
  }};
  const AskResult first = run(server, {.parallel = 1});
  EXPECT_EQ(first.answered, 3u);
  EXPECT_EQ(first.failed, 1u);
  EXPECT_EQ(first.first_troubles, (std::vector<std::string>{"2: status 400: too long"}));
  EXPECT_EQ(server.total(), 4u) << "it would be refused again";
  EXPECT_EQ(score().all.failed, 1u);
  EXPECT_EQ(score().all.right, 1u);
  // It is tried when the command is repeated; then all are there.
  Server mended{[&](const std::string&, size_t) { return good("mild"); }};
  const AskResult second = run(mended);
  EXPECT_EQ(second.earlier, 3u);
  EXPECT_EQ(second.answered, 1u);
  EXPECT_EQ(mended.asked, (std::map<std::string, size_t>{{"april", 1}}));
  EXPECT_EQ(score().all.failed, 0u);
  EXPECT_EQ(score().all.right, 2u);
  EXPECT_EQ(run(mended).earlier, 4u);
  EXPECT_EQ(mended.total(), 1u);
}

TEST_F(AskTest, ARequestThatAlwaysFailsIsGivenUpAndComesLastNextTime) {
  std::vector<std::string> order;
  std::mutex mutex;
  Server server{[&](const std::string& text, size_t) -> HttpReply {
    const std::lock_guard lock(mutex);
    order.push_back(text);
    if (text == "frost") return {500, ""};
    return good("mild");
  }};
  const AskResult result = run(server, {.parallel = 1, .tries = 3});
  EXPECT_EQ(result.failed, 1u);
  EXPECT_EQ(result.answered, 3u);
  EXPECT_EQ(server.asked["frost"], 3u);
  // A request that is new is asked before it.
  MadeTexts more(MadeTexts::usual_train(), [] {
    auto rows = MadeTexts::usual_test();
    rows.push_back({"5", "wind", 1, 0.5f});
    return rows;
  }());
  order.clear();
  ReplyFile file(path());
  ask(more.prompts(), file, server.sessions(), key_,
      {.parallel = 1, .tries = 2, .first_wait = 0.001});
  EXPECT_EQ(order, (std::vector<std::string>{"wind", "frost", "frost"}));
}

TEST_F(AskTest, AServerThatIsGoneEndsTheRun) {
  Server server{[&](const std::string& text, size_t) -> HttpReply {
    if (text == "frost") return good("cold");
    return {0, "", "could not connect"};
  }};
  EXPECT_ERROR("no answer after 2 tries; the last: could not connect",
               run(server, {.parallel = 1, .tries = 2}));
  EXPECT_EQ(server.total(), 7u) << "one answer, three requests that fail twice";
  EXPECT_EQ(score().all.right, 1u) << "which stays";
  Server back{[&](const std::string&, size_t) { return good("mild"); }};
  EXPECT_EQ(run(back).earlier, 1u);
  EXPECT_EQ(back.total(), 3u);
}

TEST_F(AskTest, WhatWouldRefuseAllIsAskedOnce) {
  ::setenv("OPENAI_API_KEY", "sk-secret", 1);
  key_ = read_key(parse_endpoint("https://h"), {});
  ::unsetenv("OPENAI_API_KEY");
  for (const int status : {401, 403, 404, 301, 418}) {
    Server server{[&](const std::string&, size_t) -> HttpReply {
      return {status, R"({"error": {"message": "wrong key sk-secret"}})"};
    }};
    const std::string error = test::error_of([&] { run(server, {.parallel = 1}); });
    EXPECT_NE(error.find("wrong key [key]"), std::string::npos) << error;
    EXPECT_EQ(error.find("sk-secret"), std::string::npos) << error;
    EXPECT_EQ(server.total(), 1u);
  }
  Server refusing{[&](const std::string&, size_t) -> HttpReply { return {400, "{}"}; }};
  EXPECT_ERROR("refuses request after request", run(refusing, {.parallel = 1}));
  EXPECT_EQ(refusing.total(), 3u);
  EXPECT_EQ(test::read_file(path()).find("sk-secret"), std::string::npos);
}

TEST_F(AskTest, ALongWaitIsAnEnd) {
  Server server{[&](const std::string& text, size_t) -> HttpReply {
    if (text == "april") return {429, "", "", 86400};
    return good("mild");
  }};
  EXPECT_EQ(run(server, {.parallel = 1}).failed, 1u);
  EXPECT_EQ(server.total(), 4u);
}

TEST_F(AskTest, OnceStoppedNothingMoreIsSent) {
  std::atomic<bool> stop{false};
  Server server{[&](const std::string&, size_t) {
    stop = true;
    return good("mild");
  }};
  const AskResult result = run(server, {.parallel = 1, .stop = &stop});
  EXPECT_EQ(result.answered, 1u) << "what was on its way is kept";
  EXPECT_EQ(result.left, 3u);
  stop = false;
  Server waiting{[&](const std::string&, size_t) -> HttpReply {
    std::thread([&] { stop = true; }).join();
    return {503, "", "", 500};
  }};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run(waiting, {.stop = &stop}).left, 3u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(AskTest, RepliesToOtherRequestsAreNotTaken) {
  Server server{[&](const std::string&, size_t) { return good("mild"); }};
  run(server);
  ReplyFile file(path());
  EXPECT_ERROR("to another request", ask(made_.prompts({.k = 3}), file, server.sessions(), key_));
  EXPECT_ERROR("to another request",
               ask(made_.prompts({.k = 2, .model = "other"}), file, server.sessions(), key_));
  EXPECT_EQ(server.total(), 4u);
}

TEST_F(AskTest, ProgressEndsWithAll) {
  Server server{[&](const std::string&, size_t) { return good("mild"); }};
  size_t last = 0, calls = 0;
  run(server, {.progress = [&](size_t done, size_t total, size_t failed) {
        EXPECT_EQ(total, 4u);
        EXPECT_EQ(failed, 0u);
        EXPECT_GE(done, last);
        last = done, ++calls;
      }});
  EXPECT_EQ(last, 4u);
  EXPECT_EQ(calls, 5u);
}

}  // namespace
}  // namespace fungi
