// SPDX-License-Identifier: Apache-2.0
// Any kind of sample goes the way of pictures: a kind of one's own, whose views differ in their
// number of tokens, is extracted, stored, reopened and compared as they are.
#include "fungi/feature/modality.h"

#include <gtest/gtest.h>

#include <numeric>

#include "fungi/feature/reopen.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/tables.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
const fs::path kBert = FUNGI_GOLDEN_DIR "/backbone/bert";
const fs::path kVit = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";

// The gradient is that of making every word longer, each with a weight by its place.
class LongerWords final : public Objective {
 public:
  std::string name() const override { return "longer"; }
  std::vector<ViewRequest> views() const override { return {{}}; }
  bool wants_tokens() const override { return true; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    EXPECT_EQ(latents.token_offsets.size(), 2u);
    EXPECT_EQ(latents.token_offsets[1], latents.tokens.rows);
    EXPECT_EQ(gradients.tokens.rows, latents.tokens.rows);
    for (size_t r = 0; r < latents.tokens.rows; ++r)
      for (size_t c = 0; c < latents.tokens.cols; ++c)
        gradients.tokens(r, c) = -latents.tokens(r, c) / float(r + 1);
    return 0;
  }
};

ExtractorOptions options_of_tables(bool words) {
  ExtractorOptions o;
  o.objectives = {"kl:width=16"};
  o.modality = std::make_shared<test::TableModality>();
  if (words) o.own.push_back(std::make_unique<LongerWords>());
  return o;
}

Extractor open_tables(bool words, Pool& pool) {
  return Extractor::open(kBert, options_of_tables(words), pool, {.precision = Precision::f32});
}

TEST(Modality, RaggedSamplesAreAlone) {
  for (const bool words : {false, true}) {  // recorded factors, and a second forward with tokens
    Pool one(1), three(3);
    Extractor alone = open_tables(words, one), together = open_tables(words, three);
    EXPECT_EQ(together.backbone().options().tokens, words);
    const test::Tables tables(40);
    const StoreRows all = together.extract(tables, test::range(40));
    ASSERT_TRUE(all.failures.empty());
    ASSERT_EQ(all.blocks.size(), words ? 3u : 2u);
    for (const size_t i : {0, 7, 39}) {
      const size_t sample[] = {i};
      const StoreRows single = alone.extract(tables, sample);
      for (size_t b = 0; b < all.blocks.size(); ++b) {
        const float *x = single.blocks[b].row(0), *y = all.blocks[b].row(i);
        EXPECT_TRUE(std::equal(x, x + all.blocks[b].cols(), y)) << "block " << b << " of " << i;
        EXPECT_NE(std::inner_product(x, x + all.blocks[b].cols(), x, 0.0), 0);
      }
    }
  }
}

TEST(Modality, OfOnesOwnIsStoredReopenedAndCompared) {
  Pool pool(2);
  const test::TemporaryFolder folder;
  const test::Tables tables(6);
  {
    Extractor extractor = open_tables(false, pool);
    StoreWriter writer(folder / "s", extractor.spec());
    ASSERT_TRUE(extract_to_store(extractor, tables, writer).complete);
  }
  const Store store = Store::open(folder / "s");
  const ExtractionRecord record = extraction_record(store);
  const Settings settings = read_settings(record.manifest.spec, "s");
  EXPECT_EQ(std::get<OwnSettings>(settings.input).facts.at("unit"), "metres");

  const auto reopen = [&](std::shared_ptr<const Modality> modality) {
    ReopenOptions options;
    options.modality = std::move(modality);
    return Reopened(record, pool, std::move(options));
  };
  Reopened same = reopen(std::make_shared<test::TableModality>());
  EXPECT_TRUE(test::same(same.rows(tables, store.select("all")), store.load("all").features));
  EXPECT_ERROR("settings.own.unit", reopen(std::make_shared<test::TableModality>("feet")));
  EXPECT_ERROR("tokeni", reopen(nullptr));
}

TEST(Modality, ASampleOfAnotherKindFails) {
  Pool pool(1);
  ExtractorOptions o;
  o.objectives = {"kl:width=16"};
  Extractor pictures =
      Extractor::open(kVit, std::move(o), pool, {.stated_facts = {{"heads", "4"}}});
  const StoreRows rows = pictures.extract(test::Tables(2), test::range(2));
  ASSERT_EQ(rows.failures.size(), 2u);
  EXPECT_EQ(rows.failures[0].stage, "view");
  EXPECT_NE(rows.failures[0].reason.find("expected an image, found"), std::string::npos);

  Extractor tables = open_tables(false, pool);
  const StoreRows none = tables.extract(test::Pictures(1), test::range(1));
  ASSERT_EQ(none.failures.size(), 1u);
  EXPECT_EQ(none.failures[0].reason, "expected a table");
}

TEST(Modality, TheModelDecidesWhatADataSetIsReadAs) {
  Pool pool(1);
  const auto kind = [&](const char* model) {
    return sample_kind(
        Backbone::open(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / model, {}, pool).architecture());
  };
  EXPECT_EQ(kind("bert"), SampleKind::text);
  EXPECT_EQ(kind("hf_ast"), SampleKind::sound);
  EXPECT_EQ(kind("hf_vit"), SampleKind::image);
  for (const SampleKind other : {SampleKind::sound, SampleKind::own})
    EXPECT_ERROR(to_string(other),
                 open_dataset(FUNGI_GOLDEN_DIR "/input/images", {.samples = other}));
  EXPECT_ERROR("tokeni", Extractor::open(kBert, {.objectives = {"kl"}}, pool));
  const Extractor listens =
      Extractor::open(FUNGI_GOLDEN_DIR "/backbone/hf_ast", {.objectives = {"kl"}}, pool);
  EXPECT_EQ(listens.data().samples, SampleKind::sound);
  EXPECT_GT(listens.data().seconds, 20 * 0.01 + 0.025);  // 21 frames, and a little more
}

TEST(ExtractorOpen, OpensWhatObjectivesAndPresetWant) {
  Pool pool(1);
  ExtractorOptions none, paper;
  none.objectives.clear();
  paper.objectives = {"kl:width=16", "ibot:width=16"}, paper.preset = Preset::paper;
  const BackboneOptions heads{.stated_facts = {{"heads", "4"}}};
  EXPECT_FALSE(Extractor::open(kVit, std::move(none), pool, heads).backbone().layer());
  const fs::path masked = FUNGI_GOLDEN_DIR "/backbone/timm_vit_masked";
  const Extractor extractor = Extractor::open(masked, std::move(paper), pool, heads);
  EXPECT_TRUE(extractor.backbone().options().tokens);
  EXPECT_EQ(extractor.blocks().size(), 3u);
}

// Two stores of one model need its weights once, and no file is looked for again.
TEST(Reopen, SharesTheWeightsOfAnother) {
  Pool pool(1);
  const test::TemporaryFolder folder;
  const test::Pictures pictures(4);
  fs::copy(kVit, folder / "m.safetensors");
  for (const char* name : {"a", "b"}) {
    ExtractorOptions o;
    o.objectives = {"kl:width=16"};
    o.seed = *name;
    Extractor extractor =
        Extractor::open(folder / "m.safetensors", std::move(o), pool,
                        {.precision = Precision::f32, .stated_facts = {{"heads", "4"}}});
    StoreWriter writer(folder / name, extractor.spec());
    ASSERT_TRUE(extract_to_store(extractor, pictures, writer).complete);
  }
  const Store a = Store::open(folder / "a"), b = Store::open(folder / "b");
  const Reopened first(extraction_record(a), pool);
  first.backbone().sha256();
  fs::remove(folder / "m.safetensors");
  EXPECT_ERROR("no such file", Reopened(extraction_record(b), pool));
  ReopenOptions shared;
  shared.backbone = first.backbone();
  Reopened second(extraction_record(b), pool, std::move(shared));
  EXPECT_TRUE(test::same(second.rows(pictures, b.select("all")), b.load("all").features));

  ReopenOptions other;
  other.backbone = Backbone::open(FUNGI_GOLDEN_DIR "/backbone/hf_vit", {}, pool);
  EXPECT_ERROR("weights of another model", Reopened(extraction_record(b), pool, std::move(other)));
}

}  // namespace
}  // namespace fungi
