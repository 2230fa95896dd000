// SPDX-License-Identifier: Apache-2.0
// Dense features of a tiny ViT against timm and torch autograd (tests/golden/make_segment.py).
#include "fungi/segment/patch_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "fungi/base/unit_rows.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

constexpr size_t kWidth = 32, kPatches = 35, kPictures = 2, kSupport = 3;
const std::string kGolden = FUNGI_GOLDEN_DIR "/segment/";

golden::Array load(const std::string& name) { return golden::load(kGolden + name + ".npy"); }

Pool& pool() {
  static Pool threads(2);
  return threads;
}

PatchFeatures open(PatchFeatureOptions options, Precision precision = Precision::f32) {
  options.height = 40, options.width = 56;
  BackboneOptions backbone;
  backbone.precision = precision;
  backbone.stated_facts = {{"heads", "4"}, {"family", "vit"}};
  return PatchFeatures::open(kGolden + "model.safetensors", std::move(options), pool(), backbone);
}

// As the script draws them: pictures, then those of the support.
const Matrix<float>& pixels() {
  static const Matrix<float> all = [] {
    TorchRandom random(5);
    Matrix<float> m(kPictures + kSupport, 3 * 40 * 56);
    for (size_t i = 0; i < m.rows() * m.cols(); ++i) m.data()[i] = random.uniform() * 4 - 2;
    return m;
  }();
  return all;
}
View<const float> pictures() { return pixels().view().slice(0, kPictures); }

void set_support(PatchFeatures& features) {
  PatchScratch scratch;
  Matrix<float> rows(kSupport * kPatches, kWidth);
  features.embed(pixels().view().slice(kPictures, kSupport), scratch, rows);
  features.set_support(std::move(rows), pool());
}

void add_head(const std::string& name, uint32_t seed, size_t width,
              std::vector<NamedMatrix>& given) {
  TorchRandom random(seed);
  std::vector<NamedMatrix> head;
  Head::draw(Head::Form::affine, random, width, kWidth).save("", head);
  for (NamedMatrix& m : head) given.push_back({name + "-" + m.name.substr(1), std::move(m.values)});
}

std::vector<NamedMatrix> given_heads(const std::string& objective) {
  std::vector<NamedMatrix> given;
  if (objective.starts_with("patch_simclr")) {
    add_head("patch_simclr-head0", 7, 12, given);
    if (objective.find("heads=2") != std::string::npos)
      add_head("patch_simclr-head1", 8, 12, given);
  } else if (objective == "kl") {
    add_head("kl-head", 9, 24, given);
  } else {
    add_head("dino-student", 10, 24, given);
    add_head("dino-teacher", 11, 24, given);
  }
  return given;
}

const std::vector<std::string> kIds{"one", "two"};

Matrix<float> features_of(const PatchFeatures& features) {
  PatchScratch scratch;
  Matrix<float> rows(kPictures * kPatches, features.width());
  features.features(pictures(), kIds, scratch, rows);
  return rows;
}

TEST(PatchFeatures, TokensAreThoseOfTimm) {
  const PatchFeatures features = open({.objective = ""});
  EXPECT_EQ(features.grid_h(), 5u);
  EXPECT_EQ(features.grid_w(), 7u);
  ASSERT_EQ(features.patches(), kPatches);
  EXPECT_EQ(features.width(), kWidth);
  EXPECT_FALSE(features.wants_support());
  const std::vector<float> expected = load("tokens").floats();
  Matrix<float> truth(kPictures * kPatches, kWidth);
  std::copy(expected.begin(), expected.end(), truth.data());
  normalise_rows(truth, truth);
  const Matrix<float> rows = features_of(features);
  ASSERT_EQ(expected.size(), rows.rows() * rows.cols());
  for (size_t t = 0; t < rows.rows(); ++t)
    EXPECT_LT(golden::relative_error(rows.row(t), truth.row(t), kWidth), 2e-5) << t;
}

// Without a projection a row holds the whole gradient of its patch.
TEST(PatchFeatures, GradientsAreThoseOfAutograd) {
  struct Case {
    const char *name, *objective;
    Preset preset = Preset::native;
  };
  const std::vector<double> a = load("a").values;
  for (const Case& c :
       {Case{"plain", "patch_simclr:drop=0"},
        {"heads", "patch_simclr:drop=0,heads=2"},
        {"cold", "patch_simclr:drop=0,negatives=3,denominator_temperature=0.07"},
        {"scrambled", "patch_simclr:drop=0,denominator_temperature=0.07", Preset::paper},
        {"kl", "kl"},
        {"dino", "dino"}}) {
    PatchFeatureOptions options{.objective = c.objective,
                                .preset = c.preset,
                                .projection = ProjectionKind::none,
                                .given = given_heads(c.objective)};
    PatchFeatures features = open(std::move(options));
    if (features.wants_support()) set_support(features);
    ASSERT_EQ(features.width(), kWidth + kWidth * (kWidth + 1));
    const Matrix<float> rows = features_of(features);
    const std::vector<double> b = load(std::string("b_") + c.name).values;
    for (size_t t = 0; t < rows.rows(); ++t) {
      std::vector<double> gradient;
      double square = 0;
      for (size_t i = 0; i < kWidth; ++i)
        for (size_t j = 0; j <= kWidth; ++j) {
          gradient.push_back(b[t * kWidth + i] * (j < kWidth ? a[t * kWidth + j] : 1));
          square += gradient.back() * gradient.back();
        }
      ASSERT_GT(square, 0);
      for (double& g : gradient) g /= std::sqrt(2 * square);  // beside a unit token
      EXPECT_LT(golden::relative_error(rows.row(t) + kWidth, gradient.data(), gradient.size()),
                1e-4)
          << c.name << " " << t;
    }
  }
}

TEST(PatchFeatures, FeaturesAreThoseOfTorch) {
  for (const std::string name : {"plain", "kl"})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const std::string objective = name == "kl" ? "kl" : "patch_simclr:drop=0";
      PatchFeatures features = open({.objective = objective,
                                     .projection = ProjectionKind::sign_reference,
                                     .given = given_heads(objective)},
                                    precision);
      if (features.wants_support()) set_support(features);
      const Matrix<float> rows = features_of(features);
      const std::vector<double> expected = load("features_" + name).values;
      ASSERT_EQ(expected.size(), rows.rows() * rows.cols());
      for (size_t t = 0; t < rows.rows(); ++t) {
        const double* truth = expected.data() + t * 2 * kWidth;
        if (precision == Precision::f32)
          EXPECT_LT(golden::relative_error(rows.row(t), truth, 2 * kWidth), 1e-4) << name << t;
        else
          EXPECT_GT(golden::cosine(rows.row(t), truth, 2 * kWidth), 0.995) << name << t;
      }
    }
}

TEST(PatchFeatures, APictureIsAlone) {
  for (const ProjectionKind projection : {ProjectionKind::factored, ProjectionKind::sign})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      PatchFeatures features = open({.projection = projection}, precision);
      set_support(features);
      const size_t width = features.width();
      const Matrix<float> together = features_of(features);
      // One by one, in the other order, at once on two threads that share the features, and by an
      // object of the same making.
      PatchFeatures again = open({.projection = projection}, precision);
      set_support(again);
      Matrix<float> alone(kPictures * kPatches, width), fresh(kPictures * kPatches, width);
      PatchScratch kept;  // for one picture after the other
      const auto run = [&](const PatchFeatures& f, size_t i, Matrix<float>& out) {
        PatchScratch own, &scratch = &f == &again ? kept : own;
        f.features(pictures().slice(i, 1), std::span(kIds).subspan(i, 1), scratch,
                   out.view().slice(i * kPatches, kPatches));
      };
      std::thread other([&] { run(features, 1, alone); });
      run(features, 0, alone);
      other.join();
      run(again, 1, fresh), run(again, 0, fresh);
      const size_t bytes = together.rows() * width * sizeof(float);
      EXPECT_EQ(std::memcmp(together.data(), alone.data(), bytes), 0) << to_string(projection);
      EXPECT_EQ(std::memcmp(together.data(), fresh.data(), bytes), 0) << to_string(projection);
    }
}

// Of the same pixels another id draws other negatives, which matter where the temperature is low;
// and another seed draws another head.
TEST(PatchFeatures, DrawsFollowFromSeedAndId) {
  PatchFeatures features = open({.objective = "patch_simclr:denominator_temperature=0.07"});
  set_support(features);
  Matrix<float> one(kPatches, features.width()), two(kPatches, features.width());
  PatchScratch scratch;
  const std::vector<std::string> ids{"a", "b"};
  features.features(pictures().slice(0, 1), std::span(ids).subspan(0, 1), scratch, one);
  features.features(pictures().slice(0, 1), std::span(ids).subspan(1, 1), scratch, two);
  for (size_t j = 0; j < kWidth; ++j) EXPECT_NEAR(one(0, j), two(0, j), 1e-6);
  EXPECT_NE(std::memcmp(one.data(), two.data(), one.cols() * sizeof(float)), 0);
  PatchFeatures other = open({.seed = 43});
  EXPECT_NE(other.state()[0].values(0, 0), features.state()[0].values(0, 0));
  EXPECT_EQ(features.state()[0].name, "patch_simclr-head0-weight");
}

TEST(PatchFeatures, ZeroGradientsLeaveTheToken) {
  // A projection to nothing: all of its entries are zero.
  PatchFeatureOptions options{.objective = "kl", .projection = ProjectionKind::matrix};
  options.projection_matrix = Matrix<float>(3, kWidth * (kWidth + 1));
  const PatchFeatures features = open(std::move(options));
  const Matrix<float> rows = features_of(features);
  ASSERT_EQ(rows.cols(), kWidth + 3);
  double square = 0;
  for (size_t j = 0; j < kWidth; ++j) square += rows(0, j) * rows(0, j);
  EXPECT_NEAR(square, 1, 1e-6);
  EXPECT_EQ(rows(0, kWidth), 0);
}

TEST(PatchFeatures, RefusesWhatCannotBe) {
  EXPECT_ERROR("choose from: patch_simclr, kl, dino", open({.objective = "ibot"}));
  EXPECT_ERROR("no parameter", open({.objective = "kl:squash=true"}));
  EXPECT_ERROR("no parameter", open({.objective = "dino:global_crops=2"}));
  EXPECT_ERROR("1024", open({.objective = "patch_simclr:heads=5000"}));
  EXPECT_ERROR("raise neighbours", open({.objective = "patch_simclr:neighbours=1"}));
  EXPECT_ERROR("0.025", open({.objective = "patch_simclr:denominator_temperature=0.01"}));
  EXPECT_ERROR("colour", open({.objective = "patch_simclr:colour=1"}));
  EXPECT_ERROR("patch_simclr-", open({.given = given_heads("kl")}));
  PatchFeatures features = open({});
  EXPECT_ERROR("set_support", features_of(features));
  EXPECT_ERROR("width 32", features.set_support(Matrix<float>(9, 5), pool()));
  EXPECT_ERROR("at least 2 tokens", features.set_support(Matrix<float>(1, kWidth), pool()));
  set_support(features);
  Matrix<float> bad = copy_of(pictures());
  bad(0, 0) = NAN;
  PatchScratch scratch;
  Matrix<float> rows(kPictures * kPatches, features.width());
  EXPECT_ERROR("not finite", features.features(bad, kIds, scratch, rows));
  EXPECT_ERROR("rows", features.embed(bad, scratch, rows));
  BackboneOptions heads;
  heads.stated_facts = {{"heads", "4"}};
  EXPECT_ERROR("40x56, or 48x64", PatchFeatures::open(kGolden + "model.safetensors",
                                                      {.height = 41, .width = 60}, pool(), heads));
  EXPECT_ERROR("vision", PatchFeatures::open(FUNGI_GOLDEN_DIR "/backbone/bert", {}, pool()));
  BackboneOptions stated;
  stated.stated_facts = {{"size", "32"}};
  EXPECT_ERROR("size", patch_backbone({}, stated));
}

}  // namespace
}  // namespace fungi
