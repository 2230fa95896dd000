// SPDX-License-Identifier: Apache-2.0
// What a store says about itself, read back as options; ids of queries; and what cannot be
// reopened. tests/app/search_test.cpp runs the whole way from picture files.
#include "fungi/feature/reopen.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/feature/extractor_fixture.h"
#include "tests/store/fixture.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

const std::string kModel = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";

// The record of a store as the extractor itself would describe it.
ExtractionRecord record_of(const ExtractorOptions& options, const BackboneOptions& backbone_options,
                           Pool& pool, const std::string& model = kModel) {
  const Backbone backbone = Backbone::open(model, backbone_options, pool);
  ExtractorOptions copy;
  copy.objectives = options.objectives, copy.preset = options.preset,
  copy.projection = options.projection, copy.projection_rows = options.projection_rows;
  copy.seed = options.seed, copy.keep_factors = options.keep_factors, copy.decode = options.decode;
  Extractor extractor(backbone, std::move(copy), pool);
  ExtractionRecord record{{.spec = extractor.spec()}, extractor.state(), "store"};
  return record;
}

TEST(Reopen, OptionsComeBackFromTheManifest) {
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"kl:temperature=3.25",
                        "dino_warm:student_temperature=0.3,local_crops=1,width=24"};
  options.preset = Preset::paper, options.projection = ProjectionKind::sparse,
  options.projection_rows = 12;
  options.seed = 0xFEDCBA9876543210u, options.keep_factors = true,
  options.decode.exif_orientation = true;
  const ExtractionRecord record = record_of(options,
                                            {.precision = Precision::f32,
                                             .layer = "blocks.-1.attn.proj",
                                             .stated_facts = {{"heads", "4"}}},
                                            pool);
  const BackboneOptions b = backbone_options(record);
  EXPECT_EQ(b.precision, Precision::f32);
  EXPECT_EQ(b.layer, "blocks.2.attn.proj");
  EXPECT_EQ(b.stated_facts.at("heads"), "4");
  EXPECT_FALSE(b.tokens);
  const ExtractorOptions o = extractor_options(record);
  ASSERT_EQ(o.objectives.size(), 2u);
  EXPECT_TRUE(o.objectives[0].starts_with("kl:"));
  EXPECT_NE(o.objectives[0].find("temperature=3.25"), std::string::npos);
  EXPECT_TRUE(o.objectives[1].starts_with("dino_warm:"));
  EXPECT_NE(o.objectives[1].find("student_temperature=0.3"), std::string::npos);
  EXPECT_EQ(o.preset, Preset::paper);
  EXPECT_EQ(o.projection, ProjectionKind::sparse);
  EXPECT_EQ(o.projection_rows, 12u);
  EXPECT_EQ(o.seed, 0xFEDCBA9876543210u);
  EXPECT_TRUE(o.keep_factors);
  EXPECT_TRUE(o.decode.exif_orientation);
  EXPECT_FALSE(o.decode.allow_truncated);
  const Reopened reopened(record, pool);
  EXPECT_EQ(reopened.backbone().sha256(), record.manifest.spec.model_sha256);
}

TEST(Reopen, ThePapersActivationOfTorchvisionModels) {
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"kl"};
  options.preset = Preset::paper;
  for (const bool torchvision : {true, false}) {
    const BackboneOptions b{.precision = Precision::f32,
                            .mha_input_as_activation = true,
                            .stated_facts = {{"heads", torchvision ? "2" : "4"}}};
    const ExtractionRecord record =
        record_of(options, b, pool,
                  torchvision ? FUNGI_GOLDEN_DIR "/backbone/torchvision_vit/model.pth" : kModel);
    EXPECT_EQ(Reopened(record, pool).backbone().options().mha_input_as_activation, torchvision);
  }
}

// The name of a file, or a config.json beside it, may tell the evaluation transform and more; the
// same weights elsewhere are the same model all the same.
TEST(Reopen, TheModelMayHaveAnotherName) {
  Pool pool(1);
  const test::Folder tmp;
  ExtractorOptions options;
  options.objectives = {"kl"};
  std::filesystem::copy_file(kModel, tmp / "plain.safetensors");
  for (const char* name : {"vit.augreg_in21k.safetensors", "mae.safetensors", "dino.safetensors"}) {
    std::filesystem::copy_file(kModel, tmp / name);
    const ExtractionRecord record = record_of(
        options, {.precision = Precision::f32, .stated_facts = {{"heads", "4"}, {"size", "40"}}},
        pool, tmp / name);
    Reopened reopened(record, pool, {.model = tmp / "plain.safetensors"});
    EXPECT_EQ(reopened.extractor().settings().input,
              read_settings(record.manifest.spec, "store").input);
  }
}

// Hugging Face's processor decides on the crop's rounding, and on the input size of DINOv2; the
// model may later lie without it.
TEST(Reopen, TheTransformOfAnImageProcessorStays) {
  Pool pool(1);
  const test::TemporaryFolder here, there;
  test::TinyCheckpoint c = test::tiny_dinov2(25);
  c.config = {{"model_type", "dinov2"}, {"num_attention_heads", 2}};
  c.write(there);
  c.image_processor = {{"size", {{"shortest_edge", 18}}}, {"crop_size", 16}};
  const ExtractionRecord record =
      record_of({.objectives = {"kl"}}, {.precision = Precision::f32}, pool, c.write(here));
  const Settings settings = read_settings(record.manifest.spec, "store");
  const Preprocess& preprocess = std::get<ImageSettings>(settings.input).preprocess;
  EXPECT_TRUE(preprocess.floor_crop);
  EXPECT_EQ(preprocess.input_size, 16u);
  Reopened reopened(record, pool, {.model = there.path()});
  EXPECT_EQ(reopened.extractor().settings().input, settings.input);
  EXPECT_TRUE(reopened.backbone().architecture().preprocess.transform.floor_crop);
}

TEST(Reopen, WhatCannotBeRebuiltIsNamed) {
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"kl"};
  const auto refused = [&](const char* part, const std::function<void(ExtractionRecord&)>& change) {
    ExtractionRecord record =
        record_of(options, {.precision = Precision::f32, .stated_facts = {{"heads", "4"}}}, pool);
    change(record);
    EXPECT_ERROR(part, Reopened(record, pool));
  };
  const auto change_setting = [](ExtractionRecord& r,
                                 const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json settings = nlohmann::json::parse(r.manifest.spec.settings);
    change(settings);
    r.manifest.spec.settings = settings.dump();
  };
  refused("kl-head-weight", [](ExtractionRecord& r) { r.state.clear(); });
  refused("belongs to none", [](ExtractionRecord& r) {
    r.state.push_back({"dino-head-weight", Matrix<float>(1, 1)});
  });
  refused("sha256", [](ExtractionRecord& r) { r.manifest.spec.model_sha256[0] ^= 1; });
  refused("no file", [](ExtractionRecord& r) { r.manifest.spec.model_sha256.clear(); });
  refused("no such file",
          [](ExtractionRecord& r) { r.manifest.spec.model_path = "gone/model.safetensors"; });
  refused("settings.objectives.mine",
          [](ExtractionRecord& r) { r.manifest.spec.pipeline += "+mine"; });
  refused("'mine'", [&](ExtractionRecord& r) {
    r.manifest.spec.pipeline += "+mine";
    change_setting(r, [](auto& s) { s["objectives"]["mine"] = nlohmann::json::object(); });
  });
  refused("f64", [](ExtractionRecord& r) { r.manifest.spec.precision = "f64"; });
  refused("seed",
          [&](ExtractionRecord& r) { change_setting(r, [](auto& s) { s.erase("seed"); }); });
  refused("settings do not say",
          [&](ExtractionRecord& r) { change_setting(r, [](auto& s) { s["preset"] = 3; }); });
  refused("settings do not say", [&](ExtractionRecord& r) {
    change_setting(r, [](auto& s) { s["stated"] = {{"heads", 4}}; });
  });
  refused("no parameter 'heat'", [&](ExtractionRecord& r) {
    change_setting(r, [](auto& s) { s["objectives"]["kl"]["heat"] = 1.0; });
  });
  refused("settings.image.preprocess.input_size", [&](ExtractionRecord& r) {
    change_setting(r, [](auto& s) { s["image"]["preprocess"]["input_size"] = 99; });
  });
  refused("settings.later",
          [&](ExtractionRecord& r) { change_setting(r, [](auto& s) { s["later"] = true; }); });
}

// Away from the mean of two support samples, which is its state.
class Apart : public Objective {
 public:
  std::string name() const override { return "apart"; }
  std::vector<ViewRequest> views() const override { return {{}}; }
  bool wants_tokens() const override { return tokens; }
  Support support() const override { return {.samples = 2}; }
  void prepare(View<const float> kept, size_t, Pool&) override {
    mean_ = Matrix<float>(1, kept.cols);
    for (size_t i = 0; i < kept.rows; ++i)
      for (size_t j = 0; j < kept.cols; ++j) mean_(0, j) += kept(i, j) / float(kept.rows);
  }
  bool ready() const override { return !mean_.empty(); }
  std::vector<NamedMatrix> state() const override {
    std::vector<NamedMatrix> all;
    if (ready()) all.push_back({"mean", mean_.copy()});
    return all;
  }
  void restore(const std::vector<NamedMatrix>& state) override {
    mean_ = state.at(0).values.copy();
  }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    for (size_t j = 0; j < latents.pooled.cols; ++j)
      gradients.pooled(0, j) = mean_(0, j) - latents.pooled(0, j);
    return 0;
  }
  bool tokens = false;

 private:
  Matrix<float> mean_;
};

TEST(Reopen, ObjectivesOfOnesOwnAreGivenAgain) {
  Pool pool(1);
  const test::TemporaryFolder folder;
  const test::Pictures pictures(4);
  for (const bool beside_kl : {true, false}) {
    const std::filesystem::path place = folder / (beside_kl ? "both" : "alone");
    {
      const Backbone backbone = Backbone::open(
          kModel, {.precision = Precision::f32, .stated_facts = {{"heads", "4"}}}, pool);
      ExtractorOptions options;
      options.objectives = beside_kl ? std::vector<std::string>{"kl"} : std::vector<std::string>{};
      options.projection_rows = 7;
      options.own.push_back(std::make_unique<Apart>());
      Extractor extractor(backbone, std::move(options), pool);
      StoreWriter writer(place, extractor.spec());
      ASSERT_TRUE(extract_to_store(extractor, pictures, writer).complete);
    }
    const Store store = Store::open(place);
    const ExtractionRecord record = extraction_record(store);
    EXPECT_ERROR("ReopenOptions::objectives", Reopened(record, pool));

    ReopenOptions own;
    own.objectives.push_back(std::make_unique<Apart>());
    Reopened reopened(record, pool, std::move(own));
    const std::vector<StoreBlock> blocks = store.select("all");
    ASSERT_EQ(blocks.back().name, "apart");
    EXPECT_EQ(blocks.back().width, 7u);
    const Matrix<float> rows = reopened.rows(pictures, blocks);
    EXPECT_TRUE(test::same(rows, store.load("all").features));

    ReopenOptions none;
    none.objectives.push_back(nullptr);
    EXPECT_ERROR("found none", Reopened(record, pool, std::move(none)));
    ReopenOptions twice;
    for (int i = 0; i < 2; ++i) twice.objectives.push_back(std::make_unique<Apart>());
    EXPECT_ERROR("twice", Reopened(record, pool, std::move(twice)));
  }
}

TEST(Reopen, ObjectivesOfOnesOwnMayLookAtTokens) {
  std::vector<std::unique_ptr<Objective>> own;
  auto looks = std::make_unique<Apart>();
  looks->tokens = true;
  own.push_back(std::move(looks));
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"kl"};
  ExtractionRecord record =
      record_of(options, {.precision = Precision::f32, .stated_facts = {{"heads", "4"}}}, pool);
  EXPECT_FALSE(backbone_options(record).tokens);
  EXPECT_FALSE(extractor_options(record).given.empty());
  Settings settings = read_settings(record.manifest.spec, "store");
  settings.objectives.push_back({"apart", {}});
  write_settings(settings, record.manifest.spec);
  EXPECT_TRUE(backbone_options(record, own).tokens);
  const ExtractorOptions reopened = extractor_options(record, std::move(own));
  EXPECT_EQ(reopened.objectives.size(), 1u);
  EXPECT_EQ(reopened.own.size(), 1u);
}

TEST(Reopen, AnotherMatrixIsToldByItsSum) {
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"kl"};
  ExtractionRecord record =
      record_of(options, {.precision = Precision::f32, .stated_facts = {{"heads", "4"}}}, pool);
  nlohmann::json settings = nlohmann::json::parse(record.manifest.spec.settings);
  auto& projection = settings["gradient"]["projection"];
  projection = {{"kind", "matrix"}, {"rows", 3}, {"seed", 42}, {"sha256", "00ff"}};
  record.manifest.spec.settings = settings.dump();
  const auto reopen = [&](size_t rows) {
    ReopenOptions given;
    given.projection_matrix = Matrix<float>(rows, 32 * 33);
    Reopened(record, pool, std::move(given));
  };
  for (const size_t rows : {size_t{3}, size_t{4}}) {
    EXPECT_ERROR("the matrix given is another one than that of store", reopen(rows));
    EXPECT_ERROR("(`given`)", reopen(rows));
  }
  projection["sha256"] = 3;
  record.manifest.spec.settings = settings.dump();
  EXPECT_ERROR("settings do not say", reopen(3));
}

TEST(Reopen, TheLongestEndOfAPathThatIsAnIdNamesTheQuery) {
  const std::vector<std::string> ids{"a.jpg", "coat/a.jpg", "/abs/b.jpg", "./listed/c.jpg"};
  const KnowsId known = [&](std::string_view id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  EXPECT_EQ(query_id("/data/train/coat/a.jpg", known), "coat/a.jpg");
  EXPECT_EQ(query_id("/data/train/coat/../coat/./a.jpg", known), "coat/a.jpg");
  EXPECT_EQ(query_id("/data/train/bag/a.jpg", known), "a.jpg");
  EXPECT_EQ(query_id("/abs/b.jpg", known), "/abs/b.jpg");
  EXPECT_EQ(query_id("./listed/c.jpg", known), "./listed/c.jpg");
  EXPECT_EQ(query_id("/data/raincoat/b.jpg", known), "b.jpg") << "however the folder is spelt";
  EXPECT_EQ(query_id("new.jpg", known), "new.jpg");
}

}  // namespace
}  // namespace fungi
