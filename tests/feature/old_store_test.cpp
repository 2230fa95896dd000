// SPDX-License-Identifier: Apache-2.0
// Stores of format version 1 (tests/golden/store): they open, are continued, followed, projected,
// compared, and reopened for queries.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "fungi/backbone/architecture_json.h"
#include "fungi/base/cpu.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/kept_factors.h"
#include "fungi/feature/project_store.h"
#include "fungi/feature/reopen.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

const fs::path kStores = FUNGI_GOLDEN_DIR "/store";
const std::vector<std::string> kNames{"factors", "embedding", "paper"};

struct Copy : test::TemporaryFolder {
  explicit Copy(const std::string& name) : store(path() / name) {
    fs::copy(kStores / name, store, fs::copy_options::recursive);
  }
  fs::path store;
};

// On the instruction set that made them the bytes are the same; on others sums differ in their last
// digits, and rows are unit vectors.
void expect_rows(View<const float> found, View<const float> stored, const std::string& what) {
  ASSERT_EQ(found.rows, stored.rows);
  ASSERT_EQ(found.cols, stored.cols);
  const float close = best_isa() == Isa::avx2 ? 0.0f : 2e-3f;
  for (size_t i = 0; i < found.rows; ++i)
    for (size_t j = 0; j < found.cols; ++j)
      ASSERT_NEAR(found(i, j), stored(i, j), close) << what << " " << i << " " << j;
}

TEST(OldStore, TellsWhatItTold) {
  for (const std::string& name : kNames) {
    const StoreInfo info = describe_store(kStores / name);
    EXPECT_EQ(info.manifest.rows(), 3u);
    const std::string text = to_text(info);
    for (const char* part : {"model.", "f32", "fungi 0.1.0 on avx2-f32", "painted", "rgb8.png",
                             "tokens", "\"parameters\"", "\"heads\":4"})
      EXPECT_NE(text.find(part), std::string::npos) << name << " " << part;
    const Settings settings = read_settings(info.manifest.spec, name);
    EXPECT_EQ(settings.precision, Precision::f32);
    EXPECT_EQ(settings.stated.at("heads"), "4");
  }
  const Store store = Store::open(kStores / "paper");
  const Architecture a = parse_architecture(store.manifest().spec.architecture, "paper");
  EXPECT_EQ(a.dialect, "torchvision");
  EXPECT_EQ(a.width, 16u);
  EXPECT_EQ(a.input_w, 24u);
  EXPECT_EQ(a.stored_grid_h, 4u);
  EXPECT_EQ(a.position_resize, PositionResize::bicubic_corners);
  EXPECT_EQ(a.norm_epsilon, 1e-6f);
  EXPECT_NE(a.preprocess.source.find("in part stated"), std::string::npos);
  const Settings settings = read_settings(store.manifest().spec, "paper");
  EXPECT_EQ(settings.preset, Preset::paper);
  EXPECT_EQ(settings.gradient->layer, "blocks.1.attn.proj");
  EXPECT_TRUE(settings.gradient->norm1_as_input);
  EXPECT_EQ(settings.gradient->shape, (LayerShape{16, 16, true}));
  EXPECT_EQ(settings.gradient->projection,
            (ProjectionSettings{ProjectionKind::gaussian, 8, 42, ""}));
  const ImageSettings& image = std::get<ImageSettings>(settings.input);
  EXPECT_TRUE(image.decode.exif_orientation);
  EXPECT_TRUE(image.decode.allow_truncated);
  EXPECT_EQ(image.preprocess,
            (Preprocess{.resize_size = 32, .filter = Filter::bilinear, .input_size = 24}));
}

TEST(OldStore, QueriesAreRowsOfIt) {
  Pool pool(1);
  for (const std::string& name : kNames) {
    const Store store = Store::open(kStores / name);
    Reopened reopened(extraction_record(store), pool);
    const FeatureSet set = store.load();
    const auto pictures = open_dataset(kStores / "pictures.tsv");  // crops are drawn by their ids
    expect_rows(reopened.rows(*pictures, set.blocks), set.features, name);
  }
}

// Nothing is computed anew, its settings being those of today's program, whatever it did not say.
TEST(OldStore, IsGoneOnWith) {
  Pool pool(1);
  for (const std::string& name : kNames) {
    const Copy copy(name);
    const Store store = Store::open(copy.store);
    Reopened reopened(extraction_record(store), pool);
    StoreSpec spec = reopened.extractor().spec();
    spec.type = store.manifest().spec.type;
    const auto data = open_dataset(kStores / "pictures.tsv");
    const size_t shard = store.manifest().shard_size;
    const auto before = test::contents(copy.store);
    {
      StoreWriter writer(copy.store, spec, {.shard_size = shard});
      EXPECT_EQ(extract_to_store(reopened.extractor(), *data, writer).missing, 0u);
    }
    const auto files = test::contents(copy.store);
    for (const auto& [file, bytes] : before)
      if (file != "manifest.json") {
        EXPECT_EQ(files.at(file), bytes) << name << " " << file;
      }
    const StoreManifest after = describe_store(copy.store).manifest;
    EXPECT_EQ(after.origins.size(), 1u) << "no row was computed";
    EXPECT_NE(test::read_file(copy.store / "manifest.json").find("\"format_version\": 2"),
              std::string::npos);
    // A store that follows the old one.
    StoreWriter follower(copy.path() / "follower", spec,
                         {.shard_size = shard, .like = kStores / name});
    extract_to_store(reopened.extractor(), *data, follower);
    const Store followed = Store::open(copy.path() / "follower");
    EXPECT_EQ(followed.manifest().state.size(), store.manifest().state.size());
    expect_rows(followed.load().features, store.load().features, name);
    for (const bool projected : {true, false})
      for (const auto& [a, b] : {std::pair(&store, &followed), std::pair(&followed, &store)})
        require_comparable(a->manifest(), b->manifest(), feature_names(spec), projected, name, "");
  }
}

TEST(OldStore, IsRefusedWhereSettingsDiffer) {
  Pool pool(1);
  const Store store = Store::open(kStores / "factors");
  const ExtractionRecord record = extraction_record(store);
  BackboneOptions backbone = backbone_options(record);
  ExtractorOptions options = extractor_options(record);
  options.seed = 8;
  const Extractor other(Backbone::open(store.manifest().spec.model_path, backbone, pool),
                        std::move(options), pool);
  EXPECT_ERROR("'settings.seed' differs: the store has 7, this run has 8",
               require_same_features(store.manifest().spec, other.spec(), "p", "h"));
  backbone.stated_facts["heads"] = "2";
  const Extractor two(Backbone::open(store.manifest().spec.model_path, backbone, pool),
                      extractor_options(record), pool);
  EXPECT_ERROR("'model.head_dim' differs: the store has 8, this run has 16",
               require_same_features(store.manifest().spec, two.spec(), "p", "h"));
}

// Projected with the options that it was extracted with, the gradients are those that it holds.
TEST(OldStore, IsProjectedAnew) {
  Pool pool(1);
  const test::TemporaryFolder tmp;
  const Store store = Store::open(kStores / "factors");
  const std::vector<StoreBlock>& blocks = store.manifest().spec.blocks;
  EXPECT_EQ(*find_block(blocks, "dino_factors_b"), (StoreBlock{"dino_factors_b", 32, 4}));
  EXPECT_EQ(*find_block(blocks, "simclr_factors_a"), (StoreBlock{"simclr_factors_a", 32, 81}));
  EXPECT_EQ(*find_block(blocks, "dino"), (StoreBlock{"dino", 8}));
  EXPECT_EQ(KeptFactors(store, "dino").terms(), 4u);
  EXPECT_EQ(KeptFactors(store, "dino").layer(), (LayerShape{32, 32, true}));
  project_store(store, tmp / "same", {.rows = 8, .keep_factors = true}, pool);
  const Store same = Store::open(tmp / "same");
  expect_rows(same.load().features, store.load().features, "projected");
  require_comparable(store.manifest(), same.manifest(), feature_names(same.manifest().spec), true,
                     "", "");
  project_store(store, tmp / "other", {.rows = 16}, pool);
  const Store other = Store::open(tmp / "other");
  EXPECT_ERROR("projection.rows",
               require_comparable(store.manifest(), other.manifest(), {"kl"}, true, "", ""));
  require_comparable(store.manifest(), other.manifest(), {"kl"}, false, "", "");
}

// A manifest of version 1 that somebody touched.
TEST(OldStore, WhatSomebodyTouchedIsNamed) {
  const std::string text = test::read_file(kStores / "factors/manifest.json");
  const auto refused = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json manifest = nlohmann::json::parse(text);
    const nlohmann::json::json_pointer at(pointer);
    if (value.is_null())
      manifest[at.parent_pointer()].erase(at.back());
    else
      manifest[at] = value;
    return test::error_of([&] {
      const StoreManifest m = parse_manifest(manifest.dump(), "x/manifest.json");
      read_settings(m.spec, "x/manifest.json");
      parse_architecture(m.spec.architecture, "x/manifest.json");
    });
  };
  const nlohmann::json manifest = nlohmann::json::parse(text);
  for (const auto& [name, value] : manifest["model"]["architecture"].items())
    for (const nlohmann::json& wrong : std::vector<nlohmann::json>{
             nullptr, 3, "?", std::string(100000, '1'), "99999999999999999999"}) {
      if ((name == "family" || name == "dialect") && wrong.is_string()) continue;
      const std::string found = refused("/model/architecture/" + name, wrong);
      EXPECT_NE(found.find(name), std::string::npos) << name << " " << found;
      EXPECT_NE(found.find("x/manifest.json"), std::string::npos) << found;
    }
  for (const auto& [name, value] : manifest["settings"].items()) {
    if (name == "preset" || name == "objectives" || name == "stated") continue;
    for (const nlohmann::json& wrong :
         std::vector<nlohmann::json>{nullptr, nlohmann::json::array(), -1}) {
      const std::string found = refused("/settings/" + name, wrong);
      EXPECT_NE(found.find(name), std::string::npos) << name << " " << found;
    }
  }
  EXPECT_NE(refused("/model/architecture/patch", "0x0"), "");
  EXPECT_NE(refused("/model/architecture/heads", "0").find("kl_factors_a"), std::string::npos);
  EXPECT_NE(refused("/blocks/4/width", 33).find("'kl_factors_b' has 33 columns"),
            std::string::npos);
  EXPECT_NE(refused("/blocks/4/width", -32).find("kl_factors_b"), std::string::npos);
  EXPECT_NE(refused("/blocks/4", 3), "");
  EXPECT_NE(refused("/blocks", 3), "");
  EXPECT_NE(refused("/settings", 3), "");
  EXPECT_NE(refused("/model", "x"), "");
}

}  // namespace
}  // namespace fungi
