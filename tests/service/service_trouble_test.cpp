// SPDX-License-Identifier: Apache-2.0
// What goes wrong: questions that are none, queues that are full, stores and models that change.
#include <gtest/gtest.h>

#include <thread>

#include "tests/service/served_store.h"
#include "tests/support/errors.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using namespace test;  // what a served store is asked

TEST(ServiceTrouble, AFullQueueSaysWhenToComeBack) {
  ServiceOptions options = made().options();
  options.waiting = 2;
  options.batch = 1;
  Service service(std::move(options));
  const std::string body = form(picture(), "x.png");
  std::atomic<size_t> good = 0, full = 0, other = 0, left = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      WebRequest request = post("/v1/search", body, kForm);
      if (t % 4 == 0) request.gone = [] { return true; };  // whoever asked has left
      const WebAnswer answer = service.answer(request);
      if (answer.status == 429) {
        EXPECT_EQ(answer.headers.front().first, "Retry-After");
      }
      ++(answer.status == 429   ? full
         : answer.status == 200 ? good
         : answer.status == 499 ? left
                                : other);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(good, 0u);
  EXPECT_GT(full, 0u);
  EXPECT_EQ(other, 0u);
  EXPECT_EQ(service.waiting(), 0u) << "those that left have freed their places";
  EXPECT_EQ(service.answer(post("/v1/search", body, kForm)).status, 200);
}

// Whatever comes: a status, a sentence, and the next question is answered.
TEST(ServiceTrouble, EveryMistakeHasASentence) {
  ServiceOptions options = made().options();
  options.most_pixels = 1'000'000;
  Service service(std::move(options));
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const std::string big = test::png(test::stripes(2000, 2000, 1, 9));
  const std::vector<std::pair<WebRequest, int>> wrong{
      {post("/v1/search", deep), 400},
      {post("/v1/search", "{\"text\": \"\xff\"}"), 400},
      {post("/v1/search", "{\"row\": \"\\ud800\"}"), 400},
      {post("/v1/search", "[]"), 400},
      {post("/v1/search", "{"), 400},
      {post("/v1/search", ""), 400},
      {post("/v1/search", R"({"row": 1, "id": "x"})"), 400},
      {post("/v1/search", R"({"row": -1})"), 400},
      {post("/v1/search", R"({"row": 1e3})"), 400},
      {post("/v1/search", R"({"row": 12})"), 404},
      {post("/v1/search", R"({"row": 1, "k": 0})"), 400},
      {post("/v1/search", R"({"row": 1, "k": 1001})"), 400},
      {post("/v1/search", R"({"row": 1, "wrong": 0})"), 400},
      {post("/v1/search", R"({"row": 1, "features": []})"), 400},
      {post("/v1/search", R"({"row": 1, "features": "nothing"})"), 400},
      {post("/v1/search", R"({"row": 1, "features": "1e999*kl"})"), 400},
      {post("/v1/search", R"({"row": 1, "effort": 5})"), 400},
      {post("/v1/search", R"({"row": 1, "classes": ["wasp"]})"), 404},
      {post("/v1/search", R"({"row": 1, "store": "other"})"), 404},
      {post("/v1/search", R"({"id": "../../../etc/passwd"})"), 404},
      {post("/v1/search", R"({"text": "a"})"), 422},
      {post("/v1/search", R"({"image": "*"})"), 400},
      {post("/v1/search", R"({"image": ""})"), 400},
      {post("/v1/search", R"({"image": "data:image/png,abc"})"), 400},
      {post("/v1/search", R"({"image": "aGVsbG8="})"), 422},
      {post("/v1/search", "a=b", "application/x-www-form-urlencoded"), 415},
      {post("/v1/search", "--XX", "multipart/form-data"), 400},
      {post("/v1/search", "", kForm), 400},
      {post("/v1/search", "--XX\r\n", kForm), 400},
      {post("/v1/search", "--XX--\r\n", kForm), 400},
      {post("/v1/search", "--XX\r\n\r\n\r\n--XX--\r\n", kForm), 400},
      {post("/v1/search", form("no picture", "x.png"), kForm), 422},
      {post("/v1/search", form(picture().substr(0, 200), "x.png"), kForm), 422},
      {post("/v1/search", form(big, "x.png"), kForm), 422},
      {post("/v1/search", form(picture(), "x.png", {{"k", "1x"}}), kForm), 400},
      {post("/v1/search", form(picture(), "x.png", {{"text", "a"}}), kForm), 400},
      {post("/v1/embeddings", R"({"input": [[1, 2]]})"), 400},
      {post("/v1/embeddings", R"({"input": ["a"]})"), 422},
      {post("/v1/embeddings", R"({"input": []})"), 400},
      {post("/v1/embeddings", R"({"input": "a", "encoding_format": "x"})"), 400},
      {post("/v1/embeddings", R"({"input": "a", "dimensions": 8})"), 400},
      {get("/v1/rows", {{"limit", "0"}}), 400},
      {get("/v1/rows", {{"offset", "-1"}}), 400},
      {get("/v1/rows", {{"class", "wasp"}}), 404},
      {get("/v1/rows", {{"store", "\xff"}}), 400},
      {get("/v1/rows/12"), 404},
      {get("/v1/rows/0/thumbnail", {{"side", "100000"}}), 400},
      {get("/v1/rows/0/../../etc/passwd"), 404},
      {get("/v1/rows/..%2f..%2fetc%2fpasswd/sample"), 400},
      {get("/v1/rows/%2fetc%2fpasswd/sample"), 400},
      {get("/../../../etc/passwd"), 404},
      {get("/v1/map", {{"layout", "x"}}), 400},
      {get("/v1/map", {{"features", "x"}}), 400},
      {get("/v1/gains", {{"test", "x"}}), 404},
  };
  for (const auto& [request, status] : wrong) {
    SCOPED_TRACE(request.method + " " + request.path + " " + request.body.substr(0, 80));
    json_of(service.answer(request), status);
    json_of(service.answer(get("/v1/rows/0")));
  }
  json_of(service.answer(post("/v1/search", form(picture(), "x.png"), kForm)));
}

TEST(ServiceTrouble, StoresMayGrowGoAndComeBack) {
  const test::ServedStore own;
  Service service(own.options());
  const auto ask = [&](int status) {
    return json_of(service.answer(post("/v1/search", form(picture(), "x.png"), kForm)), status);
  };
  const auto soon = [](const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return done();
  };
  EXPECT_EQ(ask(200)["rows"], 12);
  own.folder().write("pictures/wasp/0.png", picture());
  own.extract("store");
  EXPECT_TRUE(soon([&] { return ask(200)["rows"] == 13; })) << "it is noticed";
  EXPECT_EQ(ask(200)["version"], 2);
  EXPECT_EQ(json_of(service.answer(get("/v1/classes")))["classes"].size(), 3u);

  // What is written over it and cannot be read leaves what there was.
  const auto manifest = own.store() / "manifest.json";
  const std::string before = test::read_file(manifest);
  test::write_file(manifest, "{");
  EXPECT_TRUE(soon([&] {
    ask(200);
    return !json_of(service.answer(get("/v1/stores")))["stores"][0]["trouble"].is_null();
  }));
  test::write_file(manifest, before);
  EXPECT_TRUE(soon([&] {
    ask(200);
    return json_of(service.answer(get("/v1/stores")))["stores"][0]["trouble"].is_null();
  }));

  std::filesystem::rename(own.store(), own.folder() / "away");
  EXPECT_TRUE(soon([&] {
    return service.answer(post("/v1/search", R"({"row": 0})")).status == 503;
  }));
  json_of(service.answer(get("/v1/stores")));
  json_of(service.answer(get("/healthz")));
  std::filesystem::rename(own.folder() / "away", own.store());
  EXPECT_EQ(ask(200)["rows"], 13);
}

TEST(ServiceTrouble, AModelThatIsAnotherNowIsNoted) {
  ServiceOptions options = made().options();
  options.stores[0].model = FUNGI_GOLDEN_DIR "/backbone/timm_deit/model.safetensors";
  Service service(std::move(options));
  ASSERT_EQ(service.notes().size(), 1u);
  EXPECT_NE(service.notes()[0].find("another model"), std::string::npos);
  json_of(service.answer(post("/v1/search", form(picture(), "x.png"), kForm)), 503);
  json_of(service.answer(post("/v1/search", R"({"row": 0})")));
}

TEST(ServiceTrouble, NoLinkLeadsOutOfTheDataSet) {
  const test::ServedStore own;
  own.folder().write("secret.png", picture());
  const auto inside = own.pictures() / "ant/1.png";
  Service service(own.options());
  json_of(service.answer(get("/v1/stores")));
  EXPECT_EQ(service.answer(get("/v1/rows/1/thumbnail")).status, 200);
  std::filesystem::remove(inside);
  std::filesystem::create_symlink(own.folder() / "secret.png", inside);
  const Json refused = json_of(service.answer(get("/v1/rows/1/sample")), 404);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("outside"), std::string::npos);
  std::filesystem::remove(inside);
  json_of(service.answer(get("/v1/rows/1/sample")), 404);
  EXPECT_EQ(service.answer(get("/v1/rows/2/sample")).status, 200);
}

TEST(ServiceTrouble, RefusesWhatItCannotServe) {
  EXPECT_ERROR("expected a store", Service({}));
  EXPECT_ERROR("", Service({.stores = {{.path = made().folder() / "nothing"}}}));
  EXPECT_ERROR("two stores", Service({.stores = {{.path = made().store()}, {.path = made().store()}}}));
  const test::TemporaryFolder folder;
  test::write_made_store(folder / "made", {{"a", 0, {{1, 2}}}, {"b", -1, {{2, 1}}}}, {"x"});
  Service service({.stores = {{.path = folder / "made"}}});
  EXPECT_EQ(service.notes().size(), 1u);
  json_of(service.answer(post("/v1/search", R"({"row": 0})")));
  json_of(service.answer(post("/v1/search", form(picture(), "x.png"), kForm)), 422);
  json_of(service.answer(get("/v1/map")), 422);
  json_of(service.answer(get("/v1/gains")), 422);
}

}  // namespace
}  // namespace fungi
