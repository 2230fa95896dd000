// SPDX-License-Identifier: Apache-2.0
// What a service answers, against the library's own search; nothing here has a socket.
#include "fungi/service/service.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "fungi/base/base64.h"
#include "fungi/retrieve/database.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/search/knn.h"
#include "fungi/service/opened.h"
#include "tests/service/served_store.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using namespace test;  // what a served store is asked

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
  EXPECT_EQ(json_of(service.answer(post(
                "/v1/search", form(own, "x.png", {{"k", "3"}, {"name", "elsewhere/ant/2.png"}}),
                kForm))),
            json_of(same));
  question["file"] = question["image"];  // whichever the store takes
  question.erase("image");
  EXPECT_EQ(json_of(service.answer(post("/v1/search", question.dump()))), found);
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

TEST(Service, StoresThatWereMadeAlikeShareAModel) {
  using service::Opened;
  Pool pool(2);
  const auto open = [&](const std::filesystem::path& model,
                        const std::vector<std::shared_ptr<const Opened>>& others) {
    return std::make_shared<const Opened>(
        fungi::ServedStore{.path = made().store(), .name = "store", .model = model}, 0, 1, others,
        pool);
  };
  const auto one = open("", {}), two = open("", {one}), elsewhere = open(made().model(), {one, two});
  EXPECT_EQ(&one->extractor(), &two->extractor());
  EXPECT_NE(&one->extractor(), &elsewhere->extractor());
  ServiceOptions options = made().options();
  options.stores.push_back({.path = made().store(), .name = "again"});
  Service service(std::move(options));
  const auto neighbours = [&](const char* store) {
    return json_of(service.answer(post(
        "/v1/search", form(picture(), "x.png", {{"store", store}}), kForm)))["searches"];
  };
  EXPECT_EQ(neighbours("store"), neighbours("again"));
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
  // Some of many rows: of every class, also where classes come in turns.
  const test::TemporaryFolder folder;
  std::vector<test::MadeRow> rows;
  for (size_t i = 0; i < 400; ++i)
    rows.push_back({std::to_string(i), int64_t(i % 4), {{float(i), float(i * i % 11), 1}}});
  test::write_made_store(folder / "made", rows, {"a", "b", "c", "d"});
  Service many({.stores = {{.path = folder / "made"}}});
  const Json some = json_of(many.answer(get("/v1/map", {{"limit", "100"}})));
  std::map<int, size_t> counts;
  for (const Json& label : some["label"]) ++counts[label];
  EXPECT_EQ(counts.size(), 4u);
  for (const auto& [label, count] : counts) EXPECT_GT(count, 10u) << label;
  EXPECT_TRUE(std::is_sorted(some["row"].begin(), some["row"].end()));
  EXPECT_EQ(some["rows"], 400);
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

}  // namespace
}  // namespace fungi
