// SPDX-License-Identifier: Apache-2.0
// What a service answers, against the library's own search; nothing here has a socket.
#include "fungi/service/service.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "fungi/base/base64.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/search/knn.h"
#include "tests/service/served_store.h"
#include "tests/support/errors.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::form;
using test::get;
using test::Json;
using test::kForm;
using test::post;
using test::ServedStore;

// Made once: it takes a second.
const ServedStore& made() {
  static const ServedStore store;
  return store;
}

Json json_of(const WebAnswer& answer, int status = 200) {
  EXPECT_EQ(answer.status, status) << answer.body;
  Json body = Json::parse(answer.body, nullptr, false);
  EXPECT_FALSE(body.is_discarded()) << answer.body;
  if (status >= 400) EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
  return body;
}

std::string picture() { return test::png(test::stripes(50, 44, 77, 5)); }

// The neighbours as the library itself finds them in the store.
Neighbours expected(const std::string& bytes, const std::string& name, const std::string& features,
                    size_t k) {
  Pool pool(2);
  const test::TemporaryFolder folder;
  const auto file = folder.write(name, bytes);
  const auto database = open_database(made().store(), {.features = features}, pool);
  Reopened reopened = database->reopen(pool);
  const Matrix<float> rows = database->reduction().apply(
      reopened.rows({file}, database->reduction().blocks(), database->knows_id()), pool);
  return database->search(rows, k, pool);
}

void expect_same(const Json& search, const Neighbours& found) {
  ASSERT_EQ(search["neighbours"].size(), found.index.cols());
  for (size_t i = 0; i < found.index.cols(); ++i) {
    EXPECT_EQ(search["neighbours"][i]["row"], found.index(0, i));
    EXPECT_EQ(search["neighbours"][i]["distance"].get<double>(), found.value(0, i));
  }
}

TEST(Service, TellsWhatThereIs) {
  Service service(made().options());
  EXPECT_TRUE(service.notes().empty());
  const Json stores = json_of(service.answer(get("/v1/stores")))["stores"];
  ASSERT_EQ(stores.size(), 1u);
  EXPECT_EQ(stores[0]["name"], "store");
  EXPECT_EQ(stores[0]["rows"], 12);
  EXPECT_EQ(stores[0]["features"], "embedding+kl+dino");
  EXPECT_EQ(stores[0]["samples"], "image");
  EXPECT_EQ(stores[0]["takes_samples"], true);
  const Json classes = json_of(service.answer(get("/v1/classes")));
  EXPECT_EQ(classes["classes"], Json::parse(R"([{"label":0,"class":"ant","rows":6},
                                               {"label":1,"class":"bee","rows":6}])"));
  const Json bees = json_of(service.answer(get("/v1/rows", {{"class", "bee"}, {"limit", "2"}})));
  EXPECT_EQ(bees["total"], 6);
  ASSERT_EQ(bees["rows"].size(), 2u);
  EXPECT_EQ(bees["rows"][0]["id"], "bee/0.png");
  const Json one = json_of(service.answer(get("/v1/rows", {{"id", "ant/3.png"}})))["rows"];
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(json_of(service.answer(get("/v1/rows/" + one[0]["row"].dump()))), one[0]);
  for (const char* part : {"thumbnail", "sample"}) {
    const WebAnswer shown = service.answer(get(std::string("/v1/rows/0/") + part));
    EXPECT_EQ(shown.content_type, "image/webp");
    EXPECT_EQ(shown.body.substr(0, 4), "RIFF") << "encoded anew, not the PNG that lies there";
  }
  // Every path of the description is one, and says what is wrong with an empty question.
  const Json api = json_of(service.answer(get("/openapi.json")));
  for (const auto& [path, methods] : api["paths"].items()) {
    if (path.find('{') != std::string::npos) continue;
    const WebAnswer answer = service.answer(
        methods.contains("post") ? post(path, "{}") : get(path));
    EXPECT_EQ(answer.status, methods.contains("post") ? 400 : 200) << path << answer.body;
    WebRequest wrong = get(path);
    wrong.method = "DELETE";
    EXPECT_EQ(service.answer(wrong).status, 405) << path;
  }
}

TEST(Service, FindsWhatTheLibraryFinds) {
  Service service(made().options());
  const std::string bytes = picture();
  const std::vector<std::string> features{"embedding", "embedding+kl", "kl+0.5*dino", "all"};
  Json question{{"image", to_base64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()})},
                {"name", "x.png"},
                {"features", features},
                {"k", 5}};
  const Json found = json_of(service.answer(post("/v1/search", question.dump())));
  EXPECT_EQ(found["kind"], "image");
  ASSERT_EQ(found["searches"].size(), features.size());
  for (size_t f = 0; f < features.size(); ++f)
    expect_same(found["searches"][f],
                expected(bytes, "x.png", features[f] == "all" ? "" : features[f], 5));
  // The same by upload; a name that ends in a row's id draws its crops, so that it is that row.
  const std::string own = test::read_file(made().pictures() / "ant/2.png");
  const WebAnswer same = service.answer(
      post("/v1/search", form(own, "elsewhere/ant/2.png", {{"k", "3"}}), kForm));
  const Json nearest = json_of(same)["searches"][0]["neighbours"][0];
  EXPECT_EQ(nearest["id"], "ant/2.png");
  EXPECT_EQ(nearest["distance"], 0);
  // By row, which comes first itself, and does not vote.
  Pool pool(2);
  const auto database = open_database(made().store(), {}, pool);
  const Json by_row = json_of(service.answer(post("/v1/search", R"({"row": 7, "k": 4})")));
  expect_same(by_row["searches"][0],
              database->search_rows(std::vector<size_t>{7}, 4, pool));
  const std::string id = database->id(7);
  const Json by_id = json_of(service.answer(post("/v1/search", Json{{"id", id}, {"k", 4}}.dump())));
  EXPECT_EQ(by_id, by_row);
  // More than there are are all there are.
  const Json all = json_of(service.answer(post("/v1/search", R"({"row": 0, "k": 1000})")));
  EXPECT_EQ(all["searches"][0]["neighbours"].size(), 12u);
}

TEST(Service, ClassesLeaveOthersOut) {
  Service service(made().options());
  const Json all = json_of(service.answer(post("/v1/search", R"({"row": 2, "k": 12})")));
  const Json bees =
      json_of(service.answer(post("/v1/search", R"({"row": 2, "k": 12, "classes": ["bee"]})")));
  Json wanted = Json::array();
  for (const Json& n : all["searches"][0]["neighbours"])
    if (n["class"] == "bee") wanted.push_back(n);
  EXPECT_EQ(bees["searches"][0]["neighbours"], wanted);
  EXPECT_EQ(bees["searches"][0]["predicted"], "bee");
}

TEST(Service, ServesIndices) {
  Pool pool(2);
  const auto folder = made().folder() / "an.index";
  FeatureIndex::build(Store::open(made().store()),
                      {.features = "embedding+kl", .pca = 4, .index = {.kind = IndexKind::hnsw}},
                      pool)
      .save(folder);
  Service service({.stores = {{.path = folder, .name = "graph"}}, .threads = 2});
  const auto database = open_database(folder, {}, pool);
  expect_same(json_of(service.answer(post("/v1/search", R"({"row": 1, "k": 3, "effort": 50})")))
                  ["searches"][0],
              database->search_rows(std::vector<size_t>{1}, 3, pool, {.effort = 50}));
  const Json wrong = json_of(
      service.answer(post("/v1/search", R"({"row": 1, "features": "dino"})")), 400);
  EXPECT_EQ(wrong["error"]["param"], "features");
  json_of(service.answer(post("/v1/search", R"({"row": 1, "probes": 3})")), 400);
  // Its PCA shortens vectors for OpenAI's clients.
  const std::string bytes = picture();
  const std::string url =
      "data:image/png;base64," +
      to_base64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const Json whole = json_of(service.answer(post("/v1/embeddings", Json{{"input", url}}.dump())));
  const Json part = json_of(
      service.answer(post("/v1/embeddings", Json{{"input", {url, url}},
                                                 {"dimensions", 2},
                                                 {"model", "graph"},
                                                 {"encoding_format", "base64"}}
                                                .dump())));
  ASSERT_EQ(whole["data"][0]["embedding"].size(), 4u);
  ASSERT_EQ(part["data"].size(), 2u);
  for (const Json& item : part["data"]) {
    const std::string raw = *from_base64(item["embedding"].get<std::string>());
    ASSERT_EQ(raw.size(), 2 * sizeof(float));
    for (size_t i = 0; i < 2; ++i) {
      float value;
      std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
      EXPECT_EQ(double(value), whole["data"][0]["embedding"][i].get<double>());
    }
  }
  json_of(service.answer(post("/v1/embeddings", Json{{"input", url}, {"dimensions", 5}}.dump())),
          400);
}

TEST(Service, RequestsThatArriveTogetherAreComputedTogether) {
  Service service(made().options());
  const std::string body = form(picture(), "x.png");
  const std::string alone = service.answer(post("/v1/search", body, kForm)).body;
  std::vector<std::thread> threads;
  std::vector<std::string> answers(24);
  for (std::string& answer : answers)
    threads.emplace_back([&] { answer = service.answer(post("/v1/search", body, kForm)).body; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, alone);
  const std::string metrics = service.answer(get("/metrics")).body;
  const auto value = [&](const std::string& name) {
    return std::stoul(metrics.substr(metrics.find("\n" + name + " ") + name.size() + 2));
  };
  EXPECT_EQ(value("fungi_samples_total"), 25u);
  EXPECT_LT(value("fungi_passes_total"), 20u);
}

TEST(Service, AFullQueueSaysWhenToComeBack) {
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
      if (answer.status == 429)
        EXPECT_EQ(answer.headers.front().first, "Retry-After"), ++full;
      else
        ++(answer.status == 200 ? good : answer.status == 499 ? left : other);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(good, 0u);
  EXPECT_GT(full, 0u);
  EXPECT_EQ(other, 0u);
  EXPECT_EQ(service.waiting(), 0u) << "those that left have freed their places";
  EXPECT_EQ(service.answer(post("/v1/search", body, kForm)).status, 200);
}

// Whatever comes: a status, a sentence, and the next question is answered.
TEST(Service, EveryMistakeHasASentence) {
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

TEST(Service, StoresMayGrowGoAndComeBack) {
  const ServedStore own;
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

TEST(Service, AModelThatIsAnotherNowIsNoted) {
  ServiceOptions options = made().options();
  options.stores[0].model = FUNGI_GOLDEN_DIR "/backbone/timm_deit/model.safetensors";
  Service service(std::move(options));
  ASSERT_EQ(service.notes().size(), 1u);
  EXPECT_NE(service.notes()[0].find("another model"), std::string::npos);
  json_of(service.answer(post("/v1/search", form(picture(), "x.png"), kForm)), 503);
  json_of(service.answer(post("/v1/search", R"({"row": 0})")));
}

TEST(Service, NoLinkLeadsOutOfTheDataSet) {
  const ServedStore own;
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

TEST(Service, MapsAndGains) {
  Service service(made().options());
  for (const char* layout : {"pca", "neighbours"}) {
    const WebRequest request =
        get("/v1/map", {{"layout", layout}, {"features", "embedding kl"}, {"k", "3"}});
    const Json map = json_of(service.answer(request));
    EXPECT_EQ(map["features"], "embedding+kl");
    for (const char* list : {"x", "y", "row", "label", "right"}) EXPECT_EQ(map[list].size(), 12u);
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_LE(std::abs(map["x"][i].get<double>()), 1);
      EXPECT_LE(std::abs(map["y"][i].get<double>()), 1);
    }
    Service other(made().options());
    EXPECT_EQ(json_of(other.answer(request)), map) << "the same on every day";
  }
  // By hand: each row left out in turn.
  const Store store = Store::open(made().store());
  Pool pool(2);
  const Json gains = json_of(service.answer(get("/v1/gains", {{"k", "3"}})));
  for (const char* when : {"before", "after"}) {
    const FeatureSet set = store.load(gains[when]["features"].get<std::string>());
    const Neighbours found =
        knn(set.features, set.features, 3, pool, {.skip_same_row = true});
    size_t right = 0;
    for (size_t i = 0; i < 12; ++i) {
      size_t votes = 0;
      for (size_t n = 0; n < 3; ++n) votes += set.labels[found.index(i, n)] == set.labels[i];
      right += votes >= 2;
    }
    EXPECT_DOUBLE_EQ(gains[when]["accuracy"].get<double>(), double(right) / 12) << when;
  }
  EXPECT_EQ(gains["before"]["features"], "embedding");
  const Json pair = json_of(service.answer(get("/v1/gains", {{"k", "3"}, {"test", "store"}})));
  EXPECT_EQ(pair["rows"], 12);
}

TEST(Service, RefusesWhatItCannotServe) {
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
