// SPDX-License-Identifier: Apache-2.0
// The paper's ablations against torch (tests/golden/make_ablation.py): losses with and without
// normalised input, with and without heads, through a tiny ViT to the gradient of its layer; rows
// reduced by random matrices.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/evaluate/pair.h"
#include "fungi/feature/column_map.h"
#include "fungi/objective/factory.h"
#include "fungi/objective/head.h"
#include "tests/input/pattern.h"
#include "tests/support/errors.h"
#include "tests/support/golden_family.h"

namespace fungi {
namespace {

Matrix<float> draws(uint32_t seed, size_t rows, size_t cols) {
  TorchRandom random(seed);
  Matrix<float> m(rows, cols);
  for (size_t i = 0; i < rows * cols; ++i) m.data()[i] = random.uniform() * 2 - 1;
  return m;
}

constexpr size_t kWidth = 32, kHead = 24, kViews = 4;

void add_head(const std::string& role, uint32_t seed, std::vector<NamedMatrix>& state) {
  TorchRandom random(seed);
  Head::draw(Head::Form::affine, random, kHead, kWidth).save(role, state);
}

// As a user writes it, "kl:normalise=no,head=none", with the heads of the script.
std::unique_ptr<Objective> objective_of(const nlohmann::json& c, Pool& pool) {
  const std::string name = c["objective"], head = c["head"];
  std::string text = name + (c["normalise"] ? ":normalise=yes" : ":normalise=no");
  if (head == "none") text += ",head=none";
  if (head == "shared") text += ",heads=shared";
  if (name == "dino") text += ",local_crops=2";
  std::unique_ptr<Objective> made = make_objective(text, {.embedding_width = kWidth});
  std::vector<NamedMatrix> state;
  if (head != "none") {
    add_head(name == "dino" ? "student" : "head", 4, state);
    if (name == "dino" && head == "linear") add_head("teacher", 5, state);
    made->restore(state);
  }
  EXPECT_EQ(made->state().size(), state.size()) << text;
  if (made->ready()) return made;
  const Matrix<float> bank = draws(9, 10, kWidth);
  Matrix<float> kept(10, made->support_width(kWidth));
  made->reduce_support(bank, kept);
  made->prepare(kept, 5, pool);
  return made;
}

TEST(Ablation, HeadsAreThoseOfTorch) {
  const nlohmann::json cases = testing::golden_json("ablation/heads.json");
  const std::vector<float> expected = testing::golden_floats("ablation/heads.f32");
  const golden::Family family("timm_vit");
  Pool pool(1);
  const Backbone backbone =
      Backbone::open(family.checkpoint(),
                     {.precision = Precision::f32, .stated_facts = family.stated_facts()}, pool);
  const Matrix<float> pixels = draws(1, kViews, 3 * 16 * 16);
  ASSERT_EQ(cases.size(), 14u);
  const size_t length = kWidth * (kWidth + 1);
  ASSERT_EQ(expected.size(), cases.size() * length);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    const std::unique_ptr<Objective> objective = objective_of(cases[i], pool);
    const size_t views = cases[i]["objective"] == "kl" ? 1 : kViews;
    const Inputs inputs = Inputs::images(pixels.view().slice(0, views));
    Workspace workspace;
    Matrix<float> embeddings(views, kWidth), gradient(views, kWidth);
    backbone.forward(inputs, workspace, embeddings);
    const double loss = objective->loss_and_gradient({embeddings}, {gradient, {}});
    EXPECT_NEAR(loss / cases[i]["loss"].get<double>(), 1, 1e-4);
    LayerGradient g;
    backbone.backward(gradient, workspace, g);
    std::vector<double> full(length, 0.0);
    for (size_t r = 0; r < g.b.rows(); ++r)
      for (size_t y = 0; y < kWidth; ++y)
        for (size_t x = 0; x <= kWidth; ++x)
          full[y * (kWidth + 1) + x] += double(g.b(r, y)) * (x < kWidth ? g.a(r, x) : 1.0f);
    for (double& value : full) value /= objective->gradient_scale();
    const std::vector<double> truth(expected.begin() + ptrdiff_t(i * length),
                                    expected.begin() + ptrdiff_t((i + 1) * length));
    EXPECT_LT(golden::relative_error(full.data(), truth.data(), length), 1e-4);
  }
}

TEST(Ablation, ReductionsAreThoseOfTorch) {
  const Matrix<float> x = draws(20, 5, 70);
  Pool pool(2);
  for (const char* name : {"sign", "gaussian", "sparse"}) {
    const golden::Array expected =
        golden::load(std::string(FUNGI_GOLDEN_DIR "/ablation/reduced_") + name + ".npy");
    ASSERT_EQ(expected.shape, (std::vector<size_t>{5, 9}));
    const ColumnMap map = ColumnMap::random(parse_reduce(name), 9, 70, 3);
    EXPECT_EQ(map.output_width(), 9u);
    Matrix<float> y(5, 9), alone(1, 9);
    map.transform(x, y, pool);
    EXPECT_LT(golden::relative_error(y.data(), expected.values.data(), 45), 1e-6) << name;
    map.transform(x.view().slice(3, 1), alone, pool);
    EXPECT_TRUE(std::equal(alone.data(), alone.data() + 9, y.row(3))) << "a row is alone";
  }
  EXPECT_ERROR("sparse", parse_reduce("none"));
}

TEST(Ablation, MistakesAreNamed) {
  const ObjectiveContext context{.embedding_width = kWidth};
  EXPECT_ERROR("head=none", make_objective("kl:head=none,width=5", context));
  EXPECT_ERROR("heads=shared", make_objective("dino:head=none,heads=shared", context));
  EXPECT_ERROR("normalise", make_objective("kl:normalise=maybe", context));
  std::vector<NamedMatrix> head;
  head.push_back({"head.weight", Matrix<float>(2, kWidth)});
  head.push_back({"head.bias", Matrix<float>(1, 2)});
  EXPECT_ERROR("head=none", make_objective("simclr:head=none", context)->restore(head));
  std::vector<NamedMatrix> teacher;
  teacher.push_back({"teacher.weight", Matrix<float>(2, kWidth)});
  EXPECT_ERROR("dino-teacher-weight",
               make_objective("dino:heads=shared", context)->restore(teacher));
  EXPECT_ERROR("augmentation", make_objective("dino:augmentation=much", context));
}

// Stores of earlier versions know none of these parameters.
TEST(Ablation, ManifestsHaveOnlyWhatIsUnusual) {
  const ObjectiveContext context{.embedding_width = kWidth};
  const auto has = [&](const char* text, const std::string& name) {
    for (const Parameter& p : make_objective(text, context)->parameters())
      if (p.name == name) return true;
    return false;
  };
  for (const char* name : {"kl", "dino", "simclr"})
    for (const char* parameter : {"normalise", "head", "heads", "augmentation"})
      EXPECT_FALSE(has(name, parameter)) << name << parameter;
  EXPECT_TRUE(has("kl:normalise=no", "normalise"));
  EXPECT_FALSE(has("kl:normalise=yes", "normalise"));
  EXPECT_TRUE(has("simclr:normalise=yes", "normalise"));
  EXPECT_TRUE(has("dino:heads=shared", "heads"));
  EXPECT_TRUE(has("dino:augmentation=dino", "augmentation"));
  EXPECT_TRUE(has("kl:head=none", "head"));
  EXPECT_FALSE(has("kl:head=none", "width")) << "it would be that of a head";
}

}  // namespace
}  // namespace fungi
