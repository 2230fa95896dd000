// SPDX-License-Identifier: Apache-2.0
// A whole segmentation by neighbours, from PNG files to mIoU, against the same in plain torch
// (tests/golden/make_segment_protocol.py); and what a user may do to it.
#include "fungi/segment/protocol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fungi/objective/head.h"
#include "fungi/report/segment_page.h"
#include "fungi/segment/patch_colours.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

using test::TemporaryFolder;

const std::string kGolden = FUNGI_GOLDEN_DIR "/segment/";
constexpr size_t kPatches = 35, kTests = 3;

Pool& pool() {
  static Pool threads(2);
  return threads;
}

PatchFeatures open_features(bool gradients = true, uint64_t seed = 3) {
  PatchFeatureOptions options{.height = 40, .width = 56};
  options.objective = gradients ? "patch_simclr:drop=0" : "";
  options.projection = ProjectionKind::sign_reference;
  options.seed = seed;
  options.projection_seed = 42;
  TorchRandom random(7);
  std::vector<NamedMatrix> head;
  Head::draw(Head::Form::affine, random, 12, 32).save("", head);
  for (NamedMatrix& m : head)
    if (gradients)
      options.given.push_back({"patch_simclr-head0-" + m.name.substr(1), std::move(m.values)});
  BackboneOptions backbone;
  backbone.precision = Precision::f32;
  backbone.stated_facts = {{"heads", "4"}, {"family", "vit"}};
  return PatchFeatures::open(kGolden + "model.safetensors", std::move(options), pool(), backbone);
}

std::unique_ptr<MaskDataset> open_pairs(const char* split) {
  return open_mask_dataset(kGolden + "pairs/" + split,
                           {.class_names = {"ground", "red", "green", "blue"}});
}

const SegmentOptions kOptions{.memory = 90, .epochs = 2, .k = 7, .temperature = 0.05};

Segmenter build(const std::filesystem::path& folder, const SegmentOptions& options = kOptions) {
  return std::move(
      *Segmenter::build(open_features(), *open_pairs("train"), folder, options, pool()));
}

golden::Array load(const std::string& name) { return golden::load(kGolden + name + ".npy"); }

TEST(SegmentProtocol, TheWholeChainIsThatOfTorch) {
  const TemporaryFolder root;
  const Segmenter segmenter = build(root / "bank");
  ASSERT_EQ(segmenter.kinds(), (std::vector<std::string>{"embedding", "fungi"}));
  const auto test = open_pairs("test");
  ASSERT_EQ(test->size(), kTests);
  std::vector<std::string> ids;
  for (size_t i = 0; i < kTests; ++i) ids.push_back(test->id(i));
  const auto labels = segmenter.label(
      kTests, [&](size_t i) { return test->image(i); }, ids, pool());
  const SegmentationResult result = test_segmentation(segmenter, *test, root.path(), {}, pool());
  const golden::Array truth_labels = load("protocol_labels");
  for (size_t kind = 0; kind < 2; ++kind) {
    const std::string& name = segmenter.kinds()[kind];
    SCOPED_TRACE(name);
    const Bank& bank = segmenter.bank(kind);
    // What is remembered: features, and labels of the very patches.
    const golden::Array rows = load("protocol_" + name + "_bank");
    ASSERT_EQ(bank.rows(), rows.rows());
    const size_t width = rows.cols();
    for (size_t r = 0; r < bank.rows(); ++r) {
      EXPECT_LT(golden::relative_error(bank.features().row(r), &rows.values[r * width], width),
                kind ? 2e-4 : 2e-5)
          << r;
      std::vector<double> label(4, 0);
      bank.add_label(r, 1, label);
      for (size_t c = 0; c < 4; ++c) EXPECT_EQ(label[c], truth_labels.values[4 * r + c]) << r;
    }
    // Neighbours, but where two are so near each other that rounding decides.
    const golden::Array index = load("protocol_" + name + "_index");
    const std::vector<double> value = load("protocol_" + name + "_value").values,
                              shares = load("protocol_" + name + "_shares").values;
    size_t compared = 0;
    for (size_t i = 0; i < kTests; ++i) {
      const Neighbours near = bank.search(labels[i].features[kind], 7, pool());
      for (size_t p = 0; p < kPatches; ++p) {
        const size_t q = i * kPatches + p;
        const double* similar = &value[q * 8];
        for (size_t b = 0; b < 7; ++b) {
          EXPECT_NEAR(near.value(p, b), similar[b], 1e-4);
          const bool sure =
              similar[b] - similar[b + 1] > 2e-4 && (b == 0 || similar[b - 1] - similar[b] > 2e-4);
          compared += sure;
          if (sure) EXPECT_EQ(near.index(p, b), index.values[q * 8 + b]) << q << " " << b;
        }
        for (size_t c = 0; c < 4 && similar[6] - similar[7] > 2e-4; ++c)
          EXPECT_NEAR(labels[i].shares[kind](p, c), shares[q * 4 + c], 2e-3) << q << " " << c;
      }
    }
    EXPECT_GT(compared, kTests * kPatches * 6) << "most are sure";
    // Pixels: none but some on borders may differ.
    const std::vector<double> counts = load("protocol_" + name + "_confusion").values;
    double differing = 0;
    Confusion expected(4);
    for (size_t t = 0; t < 4; ++t)
      for (size_t p = 0; p < 4; ++p) {
        expected.add(t, p, uint64_t(counts[4 * t + p]));
        differing += std::abs(counts[4 * t + p] - double(result.confusions[kind](t, p)));
      }
    EXPECT_LE(differing, 8) << "of 6720 pixels";
    EXPECT_NEAR(result.scores[kind].miou, score(expected).miou, 1e-3);
    EXPECT_NEAR(result.scores[kind].pixel_accuracy, score(expected).pixel_accuracy, 1e-3);
  }
}

TEST(SegmentProtocol, PredictionsAreWrittenAtTheSizeOfThePicture) {
  const TemporaryFolder root;
  const Segmenter segmenter = build(root / "bank");
  const auto test = open_pairs("test");
  const auto result =
      test_segmentation(segmenter, *test, root.path(), {.at_picture_size = true}, pool());
  Confusion again(4);
  for (size_t i = 0; i < kTests; ++i) {
    const Mask predicted = read_mask(prediction_file(root.path(), "fungi", test->id(i)));
    again.add(test->mask(i), predicted, 255);
    EXPECT_EQ(segmenter.segment(test->image(i), pool(), test->id(i)).values, predicted.values);
  }
  EXPECT_EQ(score(again).miou, result.scores[1].miou);
  EXPECT_EQ(prediction_file("out", "fungi", "../a/./b"), "out/predictions/fungi/_/a/_/b.png");
  EXPECT_EQ(prediction_file("out", "fungi", "/a"), "out/predictions/fungi/a.png");
}

// Whatever the threads, and however often it is stopped.
TEST(SegmentProtocol, TheSameBytesForAnyThreadsAndRestarts) {
  const TemporaryFolder whole, often;
  {
    Pool alone(1);
    const auto segmenter =
        Segmenter::build(open_features(), *open_pairs("train"), whole / "bank", kOptions, alone);
    test_segmentation(*segmenter, *open_pairs("test"), whole.path(), {}, alone);
  }
  std::atomic<bool> stop{false};
  size_t until = 0, seen = 0, runs = 0;
  const SegmentHooks hooks{
      .progress = [&](const std::string&, size_t, size_t, size_t) { stop = ++seen > until; },
      .stop = &stop};
  for (bool complete = false; !complete; ++runs) {
    ASSERT_LT(runs, 50u);
    stop = false, seen = 0, until = 1 + runs / 4;
    const auto segmenter = Segmenter::build(open_features(), *open_pairs("train"), often / "bank",
                                            kOptions, pool(), hooks);
    if (segmenter)
      complete = test_segmentation(*segmenter, *open_pairs("test"), often.path(), {}, pool(), hooks)
                     .complete;
  }
  EXPECT_GT(runs, 2u);
  EXPECT_TRUE(test::contents(whole.path()) == test::contents(often.path()));
}

TEST(SegmentProtocol, ScoresOfOtherSettingsAndCutLinesAreMadeAgain) {
  const TemporaryFolder root;
  const Segmenter segmenter = build(root / "bank");
  const auto test = open_pairs("test");
  const auto run = [&](const SegmentationTest& o) {
    return test_segmentation(segmenter, *test, root.path(), o, pool());
  };
  run({});
  const std::string whole = test::read_file(root / "scores.jsonl");
  for (const size_t cut : {size_t{3}, whole.size() / 2, whole.size() - 1}) {
    test::write_file(root / "scores.jsonl", whole.substr(0, cut));
    run({});
    EXPECT_EQ(test::read_file(root / "scores.jsonl"), whole) << cut;
  }
  test::write_file(root / "scores.jsonl",
                   whole.substr(0, whole.find('\n') + 1) + "{\"id\": 3}\nnonsense\n");
  run({});
  EXPECT_EQ(test::read_file(root / "scores.jsonl"), whole);
  run({.at_picture_size = true});
  EXPECT_NE(test::read_file(root / "scores.jsonl"), whole);
}

TEST(SegmentProtocol, PredictionsThatWereRemovedAreMadeAgain) {
  const TemporaryFolder root;
  const Segmenter segmenter = build(root / "bank");
  const auto test = open_pairs("test");
  const auto run = [&](const SegmentationTest& o) {
    test_segmentation(segmenter, *test, root.path(), o, pool());
  };
  run({});
  const auto whole = test::contents(root.path());
  std::filesystem::remove(prediction_file(root.path(), "fungi", test->id(1)));
  run({});
  EXPECT_TRUE(test::contents(root.path()) == whole);
  std::filesystem::remove_all(root / "predictions");
  run({});
  EXPECT_TRUE(test::contents(root.path()) == whole);
  run({.write_masks = false});
  std::filesystem::remove_all(root / "predictions");
  run({.write_masks = false});
  EXPECT_FALSE(std::filesystem::exists(root / "predictions"));
}

TEST(SegmentProtocol, BrokenPicturesAreRecorded) {
  const TemporaryFolder root;
  for (const char* split : {"train", "test"})
    std::filesystem::copy(kGolden + "pairs/" + split, root / split,
                          std::filesystem::copy_options::recursive);
  test::write_file(root / "train/images/1.png", "no picture");
  test::write_file(root / "train/masks/2.png", "no mask");
  test::write_file(root / "test/masks/0.png", "nor this");
  const MaskDatasetOptions names{.class_names = {"ground", "red", "green", "blue"}};
  const auto train = open_mask_dataset(root / "train", names),
             test = open_mask_dataset(root / "test", names);
  const auto segmenter =
      Segmenter::build(open_features(), *train, root / "out/bank", kOptions, pool());
  ASSERT_EQ(segmenter->failed().size(), 2u);
  EXPECT_EQ(segmenter->failed()[0].id, "1");
  EXPECT_EQ(segmenter->bank(1).rows(), 54u) << "three pictures, nine patches, two epochs";
  const auto result = test_segmentation(*segmenter, *test, root / "out", {}, pool());
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].id, "0");
  EXPECT_EQ(result.ids.size(), 2u);
  for (const char* picture : {"1", "2"})
    test::write_file(root / "test/masks" / (std::string(picture) + ".png"), "nor this");
  EXPECT_ERROR("none of the 3 pictures could be used",
               test_segmentation(*segmenter, *test, root / "none", {}, pool()));
}

TEST(SegmentProtocol, WhatCannotBeIsSaid) {
  const TemporaryFolder root;
  const auto train = open_pairs("train");
  SegmentOptions options = kOptions;
  const auto run = [&](const char* folder) {
    Segmenter::build(open_features(false), *train, root / folder, options, pool());
  };
  options.k = 91;
  EXPECT_ERROR("asked for 91 neighbours among the 90 rows", run("a"));
  options.k = 7;
  options.images = 6;
  EXPECT_ERROR("asked for 6 of 5 pictures", run("b"));
  options.images = 0;
  run("a");
  options.epochs = 1;
  EXPECT_ERROR("settings.epochs", run("a"));
  const auto unknown = open_mask_dataset(kGolden + "pairs/train");
  EXPECT_ERROR("the number of classes is unknown",
               Segmenter::build(open_features(false), *unknown, root / "c", kOptions, pool()));
  EXPECT_ERROR("there is no memory", Segmenter::open(root / "nowhere", pool()));
  build(root / "own");
  EXPECT_ERROR("heads or a projection of its user's own", Segmenter::open(root / "own", pool()));
}

TEST(SegmentProtocol, AMemoryIsOpenedAgain) {
  const TemporaryFolder root;
  const auto train = open_pairs("train");
  const auto test = open_pairs("test");
  SegmentOptions options = kOptions;
  options.memory = 0;
  options.images = 3;
  const auto built = Segmenter::build(open_features(false), *train, root / "bank", options, pool());
  EXPECT_EQ(built->bank(0).rows(), 3 * 2 * kPatches);
  EXPECT_EQ(built->kinds(), std::vector<std::string>{"embedding"});
  const Mask mask = built->segment(test->image(0), pool());
  const Segmenter opened = Segmenter::open(root / "bank", pool());
  EXPECT_EQ(opened.segment(test->image(0), pool()).values, mask.values);
  EXPECT_EQ(opened.class_name(2), "green");
  EXPECT_EQ(opened.options().images, 3u);
  const auto moved = root / "moved.safetensors";
  std::filesystem::copy_file(kGolden + "model.safetensors", moved);
  EXPECT_EQ(Segmenter::open(root / "bank", pool(), moved).segment(test->image(0), pool()).values,
            mask.values);
  EXPECT_ERROR("the model of the memory is no longer there",
               Segmenter::open(root / "bank", pool(), root / "gone"));
  const std::string json = test::read_file(root / "bank/segment.json");
  for (size_t length = 0; length + 2 < json.size(); length += 7) {
    test::write_file(root / "bank/segment.json", json.substr(0, length));
    EXPECT_ERROR("", Segmenter::open(root / "bank", pool()));
  }
}

TEST(SegmentProtocol, ThePaperDrawsItsFewPictures) {
  EXPECT_EQ(few_pictures(5, 0), (std::vector<size_t>{0, 1, 2, 3, 4}));
  // torch.manual_seed(42); torch.randperm(10)
  EXPECT_EQ(few_pictures(10, 4), (std::vector<size_t>{2, 6, 1, 8}));
  const SegmentOptions few = SegmentOptions::few_shot();
  EXPECT_EQ(few.k, 90u);
  EXPECT_EQ(few.search.rerank, 1800u);
}

TEST(SegmentProtocol, ColoursOfPatchesAndThePage) {
  const TemporaryFolder root;
  const Segmenter segmenter = build(root / "bank");
  const PatchColours colours = PatchColours::fit(segmenter.bank(1).features(), pool());
  const Image seen = colours.picture(segmenter.bank(1).features().slice(0, 6), 2, 3, pool());
  EXPECT_EQ(seen.width, 3u);
  EXPECT_GT(*std::max_element(seen.rgb.begin(), seen.rgb.end()), 100);
  EXPECT_LT(*std::min_element(seen.rgb.begin(), seen.rgb.end()), 100);
  EXPECT_ERROR("more than three rows",
               PatchColours::fit(segmenter.bank(1).features().slice(0, 3), pool()));
  EXPECT_ERROR("all rows are the same", PatchColours::fit(Matrix<float>(9, 9), pool()));
  const auto test = open_pairs("test");
  const auto result = test_segmentation(segmenter, *test, root.path(), {}, pool());
  const std::string page = make_segment_page(segmenter, *test, result, {}, pool());
  for (const char* part : {"Segmentation by neighbours", "with gradients", "data-veil", "data-cut",
                           "features as colours", "data:image/png;base64,iVBOR"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace fungi
