// SPDX-License-Identifier: Apache-2.0
// Texts from a data set to rows of a store: alone or in a batch, equal views once, cut, prefixed,
// and extracted later as they were.
#include <gtest/gtest.h>

#include <fstream>

#include "fungi/feature/reopen.h"
#include "fungi/objective/kl.h"
#include "fungi/view/text_views.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// The golden BERT (40 words, 16 positions) with a tokeniser of its size.
class TextFeatures : public ::testing::Test {
 protected:
  TextFeatures() {
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / "bert" / file, folder / file);
    write_words("the");
  }
  void write_words(const std::string& last) {
    std::ofstream out(folder / "vocab.txt");
    for (const char* piece :
         {"[PAD]",  "[UNK]", "[CLS]", "[SEP]", "[MASK]", "how",    "do",    "i",
          "locate", "my",    "card",  "?",     ".",      ",",      "where", "is",
          "it",     "lost",  "new",   "a",     "one",    "please", "send"})
      out << piece << '\n';
    out << last << '\n';
  }

  static ExtractorOptions options() {
    ExtractorOptions o;
    o.objectives = {"kl:width=16", "dino:width=16,local_views=3",
                    "simclr:width=16,views=6,negatives=3"};
    return o;
  }
  // The embedding alone, or with objectives.
  Extractor open(TextOptions text, Pool& pool) const {
    ExtractorOptions o;
    o.objectives.clear();
    o.text = std::move(text);
    return open(std::move(o), pool);
  }
  Extractor open(ExtractorOptions o, Pool& pool) const {
    return Extractor::open(folder.path(), std::move(o), pool, {.precision = Precision::f32});
  }
  static std::unique_ptr<Dataset> texts() {
    std::vector<std::string> ids;
    std::vector<Text> all;
    for (const char* text :
         {"How do I locate my card?", "card", "", "where is the new card, please?", "is it lost",
          "I lost a card. send the new one", "how do i locate my card?"}) {
      ids.push_back(std::to_string(all.size()));
      all.push_back({text});
    }
    return memory_dataset(std::move(ids), std::move(all));
  }

  test::TemporaryFolder folder;
};

// A maker that says nothing of equal views: each is computed by itself.
class Forgetful final : public ViewMaker {
 public:
  explicit Forgetful(std::unique_ptr<ViewMaker> maker) : maker_(std::move(maker)) {}
  void open(const Sample& sample, uint32_t seed) override { maker_->open(sample, seed); }
  void write(size_t view, InputBuffer& out) override { ++written, maker_->write(view, out); }
  static inline std::atomic<size_t> written{0};

 private:
  std::unique_ptr<ViewMaker> maker_;
};

class ForgetfulTexts final : public Modality {
 public:
  explicit ForgetfulTexts(std::shared_ptr<const Modality> texts) : texts_(std::move(texts)) {}
  SampleKind kind() const override { return texts_->kind(); }
  size_t views(const ViewPlan& plan) const override { return texts_->views(plan); }
  std::unique_ptr<ViewMaker> maker(const ViewPlan& plan) const override {
    return std::make_unique<Forgetful>(texts_->maker(plan));
  }
  InputSettings settings(const DecodeOptions& decode) const override {
    return texts_->settings(decode);
  }

 private:
  std::shared_ptr<const Modality> texts_;
};

TEST_F(TextFeatures, ATextIsAloneInItsBatch) {
  Pool one(1), three(3);
  Extractor alone = open(options(), one), together = open(options(), three);
  const auto data = texts();
  ASSERT_TRUE(alone.fit(*data));
  ASSERT_TRUE(together.fit(*data));
  const StoreRows all = together.extract(*data, test::range(data->size()));
  ASSERT_TRUE(all.failures.empty());
  ASSERT_EQ(all.blocks.size(), 4u);
  for (size_t i = 0; i < data->size(); ++i) {
    const size_t sample[] = {i};
    const StoreRows single = alone.extract(*data, sample);
    for (size_t b = 0; b < all.blocks.size(); ++b)
      EXPECT_TRUE(std::equal(single.blocks[b].row(0),
                             single.blocks[b].row(0) + single.blocks[b].cols(),
                             all.blocks[b].row(i)))
          << "text " << i << " block " << b;
  }
  // Capitals mean nothing to this tokeniser, but the draws of two samples are their own.
  const auto same = [&](size_t b) {
    return std::equal(all.blocks[b].row(0), all.blocks[b].row(0) + all.blocks[b].cols(),
                      all.blocks[b].row(6));
  };
  EXPECT_TRUE(same(0) && same(1));
  EXPECT_FALSE(same(3));
}

TEST_F(TextFeatures, EqualViewsAreComputedOnceAndCountAsOftenAsTheyOccur) {
  for (const char* pooling : {"first", "mean_all"}) {  // recorded factors, and a second forward
    Pool pool(1);
    ExtractorOptions plain = options();
    const BackboneOptions how{.precision = Precision::f32, .stated_facts = {{"pooling", pooling}}};
    const Backbone backbone = Backbone::open(folder.path(), backbone_for(plain, how), pool);
    plain.modality = std::make_shared<ForgetfulTexts>(
        modality_for(backbone.architecture(), Preset::native, {}, folder.path()));
    Extractor each(backbone, std::move(plain), pool), once(backbone, options(), pool);
    const auto data = texts();
    ASSERT_TRUE(each.fit(*data));
    ASSERT_TRUE(once.fit(*data));
    const StoreRows expected = each.extract(*data, test::range(data->size())),
                    found = once.extract(*data, test::range(data->size()));
    for (size_t b = 0; b < expected.blocks.size(); ++b)
      for (size_t i = 0; i < data->size(); ++i) {
        if (b > 1 && (i == 1 || i == 2)) continue;  // one view alone: rounding is all they hold
        for (size_t c = 0; c < expected.blocks[b].cols(); ++c)
          ASSERT_NEAR(found.blocks[b](i, c), expected.blocks[b](i, c), 1e-4)
              << pooling << " block " << b << " text " << i;
      }
  }
  TextViews views(WordDeletions{.global_views = 12}, {Tokenizer::open(folder.path()), 16});
  const Sample sample = Text{"my new card"};
  views.open(sample, 5);
  std::set<std::vector<int32_t>> different;
  for (size_t v = 0; v < 12; ++v) {
    InputBuffer one, first;
    views.write(v, one), views.write(views.same_as(v), first);
    const auto ids = one.inputs().texts[0].ids, ids_of_first = first.inputs().texts[0].ids;
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), ids_of_first.begin(), ids_of_first.end()));
    EXPECT_EQ(views.same_as(v) == v, different.insert({ids.begin(), ids.end()}).second) << v;
  }
  EXPECT_LE(different.size(), 3u) << "one of three words is left out";
}

// KL that asks for one view more, which it does not look at: its backward pass cannot follow each
// forward at once.
class LateKl final : public Objective {
 public:
  std::string name() const override { return "late"; }
  std::vector<ViewRequest> views() const override {
    return {{}, {.plan = WordDeletions{.global_views = 1}, .draw = "late", .gradient = false}};
  }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    return kl_.loss_and_gradient({latents.pooled.slice(0, 1)}, {gradients.pooled.slice(0, 1), {}});
  }

 private:
  Kl kl_{{.width = 16}, 16, 42};
};

TEST_F(TextFeatures, ABackwardPassThatFollowsAtOnceIsTheSame) {
  for (const char* layer : {"blocks.1.attn.proj", "blocks.0.mlp.fc1"}) {
    Pool pool(2);
    ExtractorOptions o = options();
    o.own.push_back(std::make_unique<LateKl>());
    BackboneOptions how{.precision = Precision::f32, .stated_facts = {{"pooling", "mean_all"}}};
    how.layer = layer;
    Extractor extractor = Extractor::open(folder.path(), std::move(o), pool, how);
    const auto data = texts();
    ASSERT_TRUE(extractor.fit(*data));
    const StoreRows rows = extractor.extract(*data, test::range(data->size()));
    ASSERT_EQ(rows.blocks.size(), 5u);
    EXPECT_TRUE(test::same(rows.blocks[4], rows.blocks[1])) << layer;
  }
}

TEST_F(TextFeatures, LongTextsAreCutAndCounted) {
  Pool pool(1);
  const auto rows = [&](Extractor& extractor, const std::string& text) {
    const auto data = memory_dataset({"a"}, std::vector<Text>{{text}});
    StoreRows all = extractor.extract(*data, test::range(1));
    EXPECT_TRUE(all.failures.empty());
    return std::move(all.blocks[0]);
  };
  Extractor whole = open(TextOptions{}, pool);
  const std::string fourteen = "my card my card my card my card my card my card my card";
  const Matrix<float> expected = rows(whole, fourteen);
  const auto cuts = [](const Extractor& e) {
    for (const std::string& note : e.notes())
      if (note.find("cut off") != std::string::npos) return note.substr(0, 2);
    return std::string();
  };
  EXPECT_EQ(cuts(whole), "") << "16 positions hold 14 words";
  EXPECT_TRUE(test::same(rows(whole, fourteen + " my"), expected));
  EXPECT_TRUE(test::same(rows(whole, fourteen + " card ?"), expected));
  EXPECT_EQ(cuts(whole), "2 ");

  Extractor four = open(TextOptions{.max_tokens = 4}, pool);
  EXPECT_TRUE(test::same(rows(four, fourteen), rows(four, "my card")));
  EXPECT_EQ(cuts(four), "1 ");
  EXPECT_ERROR("16 positions", open(TextOptions{.max_tokens = 17}, pool));
  EXPECT_ERROR("max_tokens", open(TextOptions{.max_tokens = 1}, pool));
}

TEST_F(TextFeatures, AStoreIsContinuedAndAskedAsItWasMade) {
  Pool pool(1);
  ExtractorOptions o = options();
  o.text.prefix = "please: ";
  o.text.max_tokens = 12;
  const test::TemporaryFolder out;
  const auto data = texts();
  {
    Extractor extractor = open(std::move(o), pool);
    StoreWriter writer(out / "s", extractor.spec());
    ASSERT_TRUE(extract_to_store(extractor, *data, writer).complete);
  }
  const Store store = Store::open(out / "s");
  const ExtractionRecord record = extraction_record(store);
  const auto settings = std::get<TextSettings>(read_settings(record.manifest.spec, "s").input);
  EXPECT_EQ(settings.prefix, "please: ");
  EXPECT_EQ(settings.max_tokens, 12u);
  Reopened reopened(record, pool);
  EXPECT_TRUE(test::same(reopened.rows(*data, store.select("all")), store.load("all").features));

  const auto refused = [&](ExtractorOptions other, const std::string& words) {
    Extractor extractor = open(std::move(other), pool);
    EXPECT_ERROR(words, StoreWriter(out / "s", extractor.spec()));
  };
  ExtractorOptions other = options();
  other.text.max_tokens = 12;
  refused(std::move(other), "settings.text.prefix");
  other = options();
  other.text.prefix = "please: ";
  refused(std::move(other), "settings.text.max_tokens");
  write_words("them");
  EXPECT_ERROR("settings.text.tokenizer", Reopened(record, pool));
}

TEST_F(TextFeatures, ATokeniserMustBeThereAndFit) {
  Pool pool(1);
  {
    std::ofstream more(folder / "vocab.txt", std::ios::app);
    for (int i = 0; i < 20; ++i) more << "word" << i << '\n';
  }
  EXPECT_ERROR("has 44 pieces, the model has 40 words", open(TextOptions{}, pool));
  fs::remove(folder / "vocab.txt");
  EXPECT_ERROR("tokenizer.json, vocab.txt", open(TextOptions{}, pool));
}

TEST_F(TextFeatures, PicturesAndPlansOfPicturesAreRefused) {
  Pool pool(1);
  Extractor extractor = open(TextOptions{}, pool);
  const StoreRows rows = extractor.extract(test::Pictures(1), test::range(1));
  ASSERT_EQ(rows.failures.size(), 1u);
  EXPECT_NE(rows.failures[0].reason.find("expected a text, found"), std::string::npos);
  ExtractorOptions o;
  o.objectives = {"ibot:width=16"};
  EXPECT_ERROR("text", open(std::move(o), pool));
  EXPECT_ERROR("another kind of sample", text_view_count(ImagePatches{}));
  EXPECT_ERROR("1 to", text_view_count(WordDeletions{.global_views = 0}));
}

}  // namespace
}  // namespace fungi
