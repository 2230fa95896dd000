// SPDX-License-Identifier: Apache-2.0
// Reading a store: columns, norms, blocks of rows, half precision, labels of two splits, ids of any
// bytes, and files that somebody damaged.
#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"
#include "tests/support/made_store.h"

namespace fungi::test {
namespace {

double norm(const float* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += double(values[i]) * values[i];
  return std::sqrt(sum);
}

TEST(StoreRead, RowsByNumberAreTheRows) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const Store store = Store::open(tmp / "s");
  const std::vector<StoreBlock> blocks = store.select("kl+embedding");
  const std::vector<size_t> wanted{41, 3, 3, 17, 40, 0};
  Matrix<float> some(wanted.size(), 8), one(1, 8);
  store.read(blocks, true, wanted, some);
  for (size_t i = 0; i < wanted.size(); ++i) {
    store.read(blocks, true, wanted[i], one);
    EXPECT_TRUE(std::equal(one.row(0), one.row(0) + 8, some.row(i))) << i;
  }
  const std::vector<size_t> beyond{store.rows()};
  EXPECT_ERROR("asked for row", store.read(blocks, true, beyond, one));
  EXPECT_ERROR("asked for row", store.gather("kl", beyond));
}

TEST(StoreRead, WhatDoesNotFitIsRefused) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  const Store store = Store::open(tmp / "s");
  const std::vector<size_t> wanted{2, 5};
  Matrix<float> out(2, 8), narrow(2, 7), wide(2, 1 << 20), low(1, 8);
  store.read(store.select("all"), false, wanted, out);
  for (Matrix<float>* wrong : {&narrow, &wide, &low})
    EXPECT_ERROR("asked for 2 rows and 8 columns; there is room for",
                 store.read(store.select("all"), false, wanted, *wrong));
  EXPECT_ERROR("asked for 1048576 columns of 'kl', which has 3",
               store.read({{"kl", 1 << 20}}, false, wanted, wide));
  EXPECT_ERROR("", store.read({{"kl", 1 << 20}}, false, 0, wide));
  EXPECT_ERROR("there is no block 'dino'", store.read({{"dino", 8}}, false, wanted, out));
  for (const char* block : {"", "all", "embedding+kl", "dino"}) {
    EXPECT_ERROR("the store holds embedding, kl", store.gather(block, wanted));
    EXPECT_ERROR("the store holds embedding, kl", store.map(block, 0));
  }
}

TEST(StoreRead, LoadPutsBlocksSideBySideInTheOrderAsked) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const Store store = Store::open(tmp / "s");
  const FeatureSet raw = store.load("kl+embedding", false);
  ASSERT_EQ(raw.features.rows(), run.totals.rows);
  ASSERT_EQ(raw.features.cols(), 8u);
  EXPECT_EQ(raw.blocks[0].name, "kl");
  size_t row = 0;
  for (const StoreSample& sample : example_samples(0, 30)) {
    if (always_fails(sample.id)) continue;
    EXPECT_EQ(raw.ids[row], sample.id);
    EXPECT_EQ(raw.labels[row], sample.label);
    EXPECT_EQ(store.class_name(row), kClasses[size_t(sample.label)]);
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(raw.features(row, j), example_value(sample.id, 1, j));
    for (size_t j = 0; j < 5; ++j) {
      EXPECT_EQ(raw.features(row, 3 + j), example_value(sample.id, 0, j));
    }
    ++row;
  }
  const FeatureSet unit = store.load("kl+embedding");
  for (size_t i = 0; i < unit.features.rows(); ++i) {
    EXPECT_NEAR(norm(unit.features.row(i), 3), 1, 1e-6);
    EXPECT_NEAR(norm(unit.features.row(i) + 3, 5), 1, 1e-6);
    const double length = norm(raw.features.row(i), 3);
    EXPECT_FLOAT_EQ(unit.features(i, 1), float(raw.features(i, 1) / length));
  }
  EXPECT_EQ(store.select("all").size(), 2u);
  EXPECT_ERROR("there is no block 'dino'; the store holds embedding, kl", store.select("kl+dino"));
  EXPECT_ERROR("there is no block ''", store.select("kl+"));
  EXPECT_ERROR("the block 'kl' is named twice", store.select("kl+embedding+kl"));
}

TEST(StoreRead, KeptFactorsAreNoFeatures) {
  Folder tmp;
  const std::vector<std::vector<float>> row{{1, 2}, {3}, {4, 5, 6}, {7}};
  test::write_made_store(tmp / "s", {{"a", 0, row}}, {"class"},
                         {"embedding", "kl", "kl_factors_b", "kl_factors_a"});
  const Store store = Store::open(tmp / "s");
  EXPECT_EQ(store.load().features.cols(), 3u);
  EXPECT_EQ(store.select("all").size(), 2u);
  EXPECT_EQ(store.select("kl_factors_a").size(), 1u);
}

TEST(StoreRead, ZeroRowsStayZero) {
  Folder tmp;
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8});
  StoreRows rows;
  rows.blocks.emplace_back(2, 5);
  rows.blocks.emplace_back(2, 3);
  rows.blocks[1](1, 0) = 1e-30f;  // the square does not fit into a float
  writer.put(writer.plan(example_samples(0, 2), kClasses).at(0), rows);
  writer.finish();
  const FeatureSet set = Store::open(tmp / "s").load();
  EXPECT_EQ(norm(set.features.row(0), 8), 0);
  EXPECT_EQ(set.features(1, 5), 1.0f);
}

TEST(StoreRead, BlocksOfRowsOfAnySizeGiveTheSame) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  const Store store = Store::open(tmp / "s");
  const FeatureSet all = store.load("embedding+kl");
  for (size_t step : {1u, 3u, 8u, 13u, 100u}) {
    for (size_t first = 0; first < store.rows(); first += step) {
      Matrix<float> part(std::min(step, store.rows() - first), 8, 10);  // a stride of its own
      store.read(all.blocks, true, first, part);
      for (size_t i = 0; i < part.rows(); ++i) {
        for (size_t j = 0; j < 8; ++j) ASSERT_EQ(part(i, j), all.features(first + i, j));
      }
    }
  }
  Matrix<float> wrong(2, 8);
  EXPECT_ERROR("asked for rows", store.read(all.blocks, true, store.rows() - 1, wrong));
  Matrix<float> narrow(1, 7);
  EXPECT_ERROR("asked for rows", store.read(all.blocks, true, 0, narrow));
}

TEST(StoreRead, MappedShardsAreTheFiles) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const FeatureSet raw = Store::open(tmp / "s").load("kl", false);
  Store::Mapped mapped;
  {
    const Store store = Store::open(tmp / "s");
    ASSERT_EQ(store.shards(), 4u);
    mapped = store.map("kl", 2);
    EXPECT_ERROR("asked for shard 4 of 4", store.map("kl", 4));
  }  // the data outlives the store
  ASSERT_GT(mapped.rows.rows, 0u);
  for (size_t i = 0; i < mapped.rows.rows; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(mapped.rows(i, j), raw.features(mapped.first_row + i, j));
    }
  }
}

TEST(StoreRead, HalfPrecisionKeepsElevenBitsAndSurvivesRewriting) {
  Folder tmp;
  StoreSpec half = example_spec();
  half.type = StoreType::float16;
  Extraction run;
  run(tmp / "half", example_samples(0, 60, 2), {.shard_size = 8}, half);
  run(tmp / "half", example_samples(0, 60), {.shard_size = 8}, half);
  EXPECT_EQ(run.computed, 30u);
  Extraction fresh;
  fresh(tmp / "fresh", example_samples(0, 60), {.shard_size = 8}, half);
  expect_same_bytes(tmp / "fresh", tmp / "half", "rewritten in half precision");
  fresh(tmp / "full", example_samples(0, 60));
  const FeatureSet a = Store::open(tmp / "full").load("all", false);
  const FeatureSet b = Store::open(tmp / "half").load("all", false);
  for (size_t i = 0; i < a.features.rows(); ++i) {
    for (size_t j = 0; j < 8; ++j) {
      EXPECT_NEAR(b.features(i, j), a.features(i, j),
                  std::abs(a.features(i, j)) * 0x1p-11 + 0x1p-25);
    }
  }
  EXPECT_LT(fs::file_size(tmp / "half/kl-00000.npy"), fs::file_size(tmp / "full/kl-00000.npy"));
}

TEST(StoreRead, IdsAndClassesOfAnyBytesComeBack) {
  Folder tmp;
  const std::vector<std::string> ids = {"plain.jpg",
                                        "caf\xc3\xa9.jpg",
                                        "latin\xe9.jpg",
                                        "quote\"\\u0000\\udc80.jpg",
                                        "tab\there\n",
                                        "\xf0\x9f\x8d\x84.png",
                                        "\xed\xa0\x80surrogate",
                                        "\xff\xfe\x80",
                                        std::string("nul\0inside", 10)};
  std::vector<StoreSample> samples;
  for (const std::string& id : ids) samples.push_back({id, 0, "\xe9"});
  StoreSpec spec = example_spec();
  spec.notes = "{\"pair\": \"\\ud83c\\udf44 \\udc41\"}";
  const std::vector<std::string> classes = {"Z\xfcrich"};
  for (int round = 0; round < 2; ++round) {
    StoreWriter writer(tmp / "s", spec, {.shard_size = 8});
    Extraction run;
    run.fails = [](const std::string& id) { return id == "\xff\xfe\x80"; };
    for (const StoreWork& work : writer.plan(samples, classes)) {
      EXPECT_EQ(round, 0) << "a row was not recognised";
      writer.put(work, run.compute(spec, samples, work));
    }
    writer.finish();
  }
  const Store store = Store::open(tmp / "s");
  std::vector<std::string> expected = ids;
  std::erase(expected, "\xff\xfe\x80");
  EXPECT_EQ(store.ids(), expected);
  EXPECT_EQ(store.classes(), classes);
  const StoreInfo info = describe_store(tmp / "s", 100);
  ASSERT_EQ(info.first_failed.size(), 1u);
  EXPECT_EQ(info.first_failed[0].id, "\xff\xfe\x80");
  // As Python's surrogateescape has it.
  EXPECT_NE(read_file(tmp / "s/rows-00000.jsonl").find("latin\\udce9.jpg"), std::string::npos);
}

TEST(StoreRead, LabelsOfTwoSplitsAreMatchedByClassName) {
  FeatureSet test;
  test.classes = {"bee", "cat", "dog"};
  test.labels = {0, 1, -1, 1};
  const std::vector<std::string> train = {"ant", "bee", "cat"};
  EXPECT_EQ(align_labels(train, test), (std::vector<int64_t>{1, 2, -1, 2}));
  test.labels.push_back(2);
  EXPECT_ERROR("the class 'dog' is not among the 3 classes", align_labels(train, test));
  EXPECT_EQ(align_labels(train, test, true), (std::vector<int64_t>{1, 2, -1, 2, -1}));
  EXPECT_ERROR("have class names, the training data has no", align_labels({}, test));
  test.classes.clear();
  EXPECT_ERROR("are only numbers, those of the training data have", align_labels(train, test));
  FeatureSet bare;
  bare.labels = {-1, -1};
  EXPECT_ERROR("expected labels, found none", align_labels(train, bare));
  EXPECT_EQ(align_labels({}, test), test.labels);
  for (const int64_t label : {int64_t{3}, int64_t{50'000'000}, INT64_MAX, int64_t{-2}, INT64_MIN}) {
    const FeatureSet wrong{{"a"}, {label}, {"bee", "cat", "dog"}, {}, {}};
    EXPECT_ERROR("has no class: there are 3 classes", align_labels(train, wrong, true));
  }

  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const Store store = Store::open(tmp / "s");
  const std::vector<int64_t> aligned = align_labels({"cat", "bee", "ant"}, store);
  for (size_t i = 0; i < aligned.size(); ++i) EXPECT_EQ(aligned[i], 2 - store.labels()[i]);
}

TEST(StoreRead, RowsWithoutLabels) {
  Folder tmp;
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8});
  const std::vector<StoreSample> samples = {{"x", -1, ""}, {"y", 4, ""}};
  Extraction run;
  run.fails = [](const std::string&) { return false; };
  for (const StoreWork& work : writer.plan(samples, {})) {
    writer.put(work, run.compute(example_spec(), samples, work));
  }
  writer.finish();
  EXPECT_EQ(read_file(tmp / "s/rows-00000.jsonl"), "{\"id\":\"x\"}\n{\"id\":\"y\",\"label\":4}\n");
  const Store store = Store::open(tmp / "s");
  EXPECT_EQ(store.labels(), (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(store.class_name(0), "");
  EXPECT_EQ(store.class_name(1), "4");
  EXPECT_ERROR("1 of 2 have none, e.g. 'x'", require_labels(store));
  run(tmp / "labelled", example_samples(0, 9));
  EXPECT_NO_THROW(require_labels(Store::open(tmp / "labelled")));
}

TEST(StoreRead, DamagedFilesAreNamed) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  auto after = [&](const std::string& name, const std::function<void(const fs::path&)>& damage) {
    fs::remove_all(tmp / "d");
    fs::copy(tmp / "s", tmp / "d", fs::copy_options::recursive);
    damage(tmp / ("d/" + name));
    const std::string text = error_of([&] { Store::open(tmp / "d").load(); });
    EXPECT_NE(text.find(name), std::string::npos) << name << ": " << text;
    return text;
  };
  auto remove = [](const fs::path& path) { fs::remove(path); };
  auto cut = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 5); };
  auto replace = [](const std::string& bytes) {
    return [=](const fs::path& path) { write_file(path, bytes); };
  };
  after("manifest.json", remove);
  after("manifest.json", cut);
  after("manifest.json", replace("{}"));
  after("kl-00001.npy", remove);
  after("kl-00001.npy", cut);
  after("kl-00001.npy", replace(read_file(tmp / "s/embedding-00001.npy")));
  after("rows-00002.jsonl", remove);
  after("rows-00002.jsonl", cut);
  after("rows-00002.jsonl", replace("{\"id\":\"x\"}\n"));
  after("rows-00002.jsonl", replace("[]\n"));
  after("rows-00002.jsonl", replace("{\"label\":1}\n"));
  const std::string manifest = read_file(tmp / "s/manifest.json");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"format_version\": 2", "\"format_version\": 3"},
           {"\"shard_size\": 8", "\"shard_size\": \"8\""},
           {"\"shard_size\": 8", "\"shard_sighs\": 8"},
           {"\"embedding\"", "\"../../embedding\""},
           {"\"kl-head\"", "\"../kl-head\""},
           {"\"float32\"", "\"float64\""},
           {"\"shards\": [\n  ", "\"shards\": [\n  -"},
           {"\"shards\": [\n  ", "\"shards\": [\n  1"}}) {
    const size_t at = manifest.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::string changed = manifest;
    changed.replace(at, from.size(), to);
    fs::remove_all(tmp / "d");
    fs::copy(tmp / "s", tmp / "d", fs::copy_options::recursive);
    write_file(tmp / "d/manifest.json", changed);
    EXPECT_NE(error_of([&] { Store::open(tmp / "d").load(); }), "") << to;
  }
}

TEST(StoreRead, InfoTellsWhatIsThere) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const StoreInfo info = describe_store(tmp / "s", 3);
  EXPECT_EQ(info.first_rows.size(), 3u);
  EXPECT_EQ(info.pending_updates, 0u);
  const std::string text = to_text(info);
  for (const char* part :
       {"embedding+kl", "kl [", "float32", "images/00", "(ant)", "ends early", "sha256 00ff",
        "temperature", "kl-head [2, 3]", "pipeline   embedding+kl\n", "network    {",
        "precision  f32\n", "on generic\n", "classes    3\n", "samples\nfirst rows\n  0  ",
        "failed\n  images/"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  const auto json = nlohmann::json::parse(to_json(info));
  EXPECT_EQ(json["manifest"]["rows"], run.totals.rows);
  EXPECT_EQ(json["first_rows"].size(), 3u);
  EXPECT_GT(json["bytes"], 1000);
  EXPECT_TRUE(is_store(tmp / "s"));
  EXPECT_FALSE(is_store(tmp / "nowhere"));
  EXPECT_ERROR("not a feature store", Store::open(tmp / "nowhere"));
}

}  // namespace
}  // namespace fungi::test
