// SPDX-License-Identifier: Apache-2.0
// Sounds from files to rows of a store: alone or in a batch, on any threads, at another rate, cut
// into windows, and extracted later as they were.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/reopen.h"
#include "fungi/feature/sound_statistics.h"
#include "fungi/input/filter_bank.h"
#include "fungi/input/sound.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/input/wav_writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// The golden models: an AST that looks at 21 frames of 16 bins, a Whisper and a KWT.
const fs::path kModels = fs::path(FUNGI_GOLDEN_DIR) / "backbone";

Sound noise(size_t samples, uint64_t seed, double rate = 16000) {
  Sound sound{std::vector<float>(samples), rate};
  const RandomStream random(seed, "sound");
  for (size_t n = 0; n < samples; ++n)
    sound.samples[n] = float(0.2 * (random.uniform(n) - 0.5) * (1 + std::sin(0.001 * double(n))));
  return sound;
}

ExtractorOptions options() {
  ExtractorOptions o;
  o.objectives = {"kl:width=16", "dino:width=16,local_views=3",
                  "simclr:width=16,views=6,negatives=3"};
  return o;
}

class SoundFeatures : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      FilterBank probe(ast_front_end());
      resample(std::vector<float>(100), 8000, 16000);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  static Extractor open(ExtractorOptions o, Pool& pool, const std::string& model = "hf_ast") {
    return Extractor::open(kModels / model, std::move(o), pool,
                           {.precision = Precision::f32, .stated_facts = {{"heads", "2"}}});
  }
  static std::unique_ptr<Dataset> sounds() {
    std::vector<std::string> ids;
    std::vector<Sound> all;
    for (const size_t samples : {3600, 1000, 16000, 401, 5000, 3601, 2000}) {
      ids.push_back(std::to_string(all.size()));
      all.push_back(noise(samples, all.size(), all.size() == 4 ? 22050 : 16000));
    }
    return memory_dataset(std::move(ids), std::move(all));
  }
};

TEST_F(SoundFeatures, ASoundIsAloneInItsBatch) {
  for (const char* model : {"hf_ast", "whisper", "kwt"}) {
    Pool one(1), three(3);
    Extractor alone = open(options(), one, model), together = open(options(), three, model);
    const auto data = sounds();
    ASSERT_TRUE(alone.fit(*data));
    ASSERT_TRUE(together.fit(*data));
    const StoreRows all = together.extract(*data, test::range(data->size()));
    ASSERT_TRUE(all.failures.empty()) << model << ": " << all.failures[0].reason;
    ASSERT_EQ(all.blocks.size(), 4u);
    for (size_t i = 0; i < data->size(); ++i) {
      const size_t sample[] = {i};
      const StoreRows single = alone.extract(*data, sample);
      for (size_t b = 0; b < all.blocks.size(); ++b)
        EXPECT_TRUE(std::equal(single.blocks[b].row(0),
                               single.blocks[b].row(0) + single.blocks[b].cols(),
                               all.blocks[b].row(i)))
            << model << " sound " << i << " block " << b;
    }
  }
}

TEST_F(SoundFeatures, WhatWasDoneToThemIsTold) {
  Pool pool(2);
  ExtractorOptions o;
  o.objectives.clear();
  Extractor extractor = open(std::move(o), pool);
  const auto data = sounds();
  extractor.extract(*data, test::range(data->size()));
  const auto told = [&](const std::string& part) {
    for (const std::string& note : extractor.notes())
      if (note.find(part) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(told("3 samples are longer than what the model looks at"));
  EXPECT_TRUE(told("1 samples have another rate than the model's and were resampled"));
  const auto bad = memory_dataset({"short", "good"}, std::vector<Sound>{noise(300, 1), noise(900, 2)});
  const StoreRows rows = extractor.extract(*bad, test::range(2));
  ASSERT_EQ(rows.failures.size(), 1u);
  EXPECT_EQ(rows.failures[0].position, 0u);
  EXPECT_NE(rows.failures[0].reason.find("less than one window"), std::string::npos);
}

TEST_F(SoundFeatures, FilesAreLookedAtAsTheModelWantsThem) {
  if (sound_formats().empty()) GTEST_SKIP() << "built without libsndfile";
  const test::TemporaryFolder folder;
  for (const char* name : {"clips/a/1.wav", "clips/a/2.wav", "clips/b/3.wav"}) {
    std::vector<int16_t> samples(40000);
    const RandomStream random(uint64_t(name[8]), "file");
    for (size_t n = 0; n < samples.size(); ++n) samples[n] = int16_t(random.bits(n) % 9000);
    folder.write(name, test::wav({}, samples));
  }
  Pool pool(2);
  ExtractorOptions o = options();
  o.sound.window = 0.2;
  Extractor extractor = open(std::move(o), pool);
  DatasetOptions looks = extractor.data();
  EXPECT_EQ(looks.samples, SampleKind::sound);
  EXPECT_DOUBLE_EQ(looks.seconds, 0.2);
  looks.window = 0.2, looks.hop = 0.1;
  const auto data = open_dataset(folder / "clips", looks);
  ASSERT_EQ(data->size(), 3 * 24u);
  StoreWriter writer(folder / "store", extractor.spec());
  extract_to_store(extractor, *data, writer);
  const Store store = Store::open(folder / "store");
  ASSERT_EQ(store.rows(), data->size());
  const std::string settings = store.manifest().spec.settings;
  for (const char* part : {"\"resampler\":\"soxr HQ\"", "\"window\":0.2", "\"kind\":\"kaldi\""})
    EXPECT_NE(settings.find(part), std::string::npos) << part << " in " << settings;

  // A file that is asked for is treated as the rows were: as the first window of it.
  Reopened reopened(extraction_record(store), pool);
  const std::vector<StoreBlock> blocks = store.select("embedding+kl");
  Matrix<float> stored(store.rows(), total_width(blocks));
  store.read(blocks, true, 0, stored);
  const Matrix<float> query =
      reopened.rows({folder / "clips/a/2.wav"}, blocks, knows_ids_of(store));
  const auto row = std::find(store.ids().begin(), store.ids().end(), "a/2.wav@0.0");
  ASSERT_NE(row, store.ids().end());
  EXPECT_TRUE(std::equal(query.row(0), query.row(0) + query.cols(),
                         stored.row(size_t(row - store.ids().begin()))));
  EXPECT_ERROR("expected a sound", reopened.rows({folder / "store/manifest.json"}, blocks,
                                                 knows_ids_of(store)));
}

TEST_F(SoundFeatures, StatisticsAreMeasured) {
  Pool one(1), three(3);
  const Architecture a = read_architecture(Checkpoint::open(kModels / "hf_ast"), {});
  const auto data = sounds();
  const MeasuredSounds x = measure_sounds(*data, a, {}, one), y = measure_sounds(*data, a, {}, three);
  EXPECT_EQ(x.facts(), y.facts());
  EXPECT_EQ(x.sounds, 7u);
  // All that the model then is fed of these sounds has mean 0 and deviation 1/2.
  Pool pool(1);
  const Architecture stated = read_architecture(Checkpoint::open(kModels / "hf_ast"), x.facts());
  const auto modality = modality_for(stated, Preset::native);
  const auto maker = modality->maker(WholeView{});
  double count = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < data->size(); ++i) {
    const Sample sample = data->decode(i, data->read(i));
    maker->open(sample, 0);
    InputBuffer buffer;
    maker->write(0, buffer);
    const Inputs inputs = buffer.inputs();
    for (size_t j = 0; j < inputs.frames[0] * 16; ++j) {
      const double v = inputs.pixels.row(0)[j];
      ++count, sum += v, squares += v * v;
    }
  }
  EXPECT_NEAR(sum / count, 0, 1e-5);
  EXPECT_NEAR(std::sqrt(squares / count), 0.5, 1e-5);
  EXPECT_EQ(sound_statistics("esc50").at("frames"), "512");
  EXPECT_ERROR("no statistics 'x'", sound_statistics("x"));
  const Architecture whisper = read_architecture(Checkpoint::open(kModels / "whisper"), {});
  EXPECT_ERROR("nothing that has a mean", measure_sounds(*data, whisper, {}, one));
  const auto silent = memory_dataset({"a"}, std::vector<Sound>{{std::vector<float>(900), 16000}});
  EXPECT_ERROR("all numbers", measure_sounds(*silent, a, {}, one));
}

}  // namespace
}  // namespace fungi
