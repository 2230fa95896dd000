// SPDX-License-Identifier: Apache-2.0
// Oracle: torch autograd in f64 at the sizes of real runs (tests/golden/make_objective.py says how
// inputs are drawn).
#include "tests/support/golden.h"

#include "fungi/objective/factory.h"
#include "reference.h"

namespace fungi {
namespace {

constexpr size_t kWidth = 192;

Matrix<float> draws(uint32_t seed, size_t rows, size_t cols = kWidth) {
  TorchRandom random(seed);
  Matrix<float> m(rows, cols);
  for (size_t i = 0; i < rows * cols; ++i) m.data()[i] = random.uniform() * 2 - 1;
  return m;
}

void add_head(const std::string& role, uint32_t seed, size_t width, std::vector<NamedMatrix>& state,
              Head::Form form = Head::Form::affine) {
  TorchRandom random(seed);
  Head::draw(form, random, width, kWidth).save(role, state);
}

void check(const std::string& name, const Objective& objective, const Matrix<float>& e) {
  const std::vector<float> expected =
      golden::load(FUNGI_GOLDEN_DIR "/objective/" + name + ".npy").floats();
  ASSERT_EQ(expected.size(), 1 + e.rows() * kWidth);
  Matrix<float> g(e.rows(), kWidth);
  const double loss = objective.loss_and_gradient({e}, {g, {}});
  EXPECT_NEAR(loss, expected[0], 2e-5 * std::abs(expected[0])) << name;
  double difference = 0, square = 0;
  for (size_t i = 0; i < e.rows() * kWidth; ++i) {
    const double truth = expected[1 + i], found = g.data()[i] / objective.gradient_scale();
    difference += (found - truth) * (found - truth);
    square += truth * truth;
  }
  EXPECT_GT(square, 0);
  EXPECT_LT(std::sqrt(difference / square), 1e-5) << name;
}

ObjectiveContext context() {
  ObjectiveContext c;
  c.embedding_width = kWidth;
  return c;
}

TEST(Golden, Kl) {
  std::vector<NamedMatrix> state;
  add_head("head", 2, 768, state);
  for (const auto& [name, text] : {std::pair{"kl", "kl"},
                                   {"kl_lib", "kl:temperature=1"},
                                   {"kl_model_first", "kl:direction=model_first"}}) {
    const auto objective = make_objective(text, context());
    objective->restore(state);
    check(name, *objective, draws(1, 1));
  }
}

TEST(Golden, Dino) {
  std::vector<NamedMatrix> state;
  add_head("student", 4, 2048, state);
  add_head("teacher", 5, 2048, state);
  const auto objective = make_objective("dino", context());
  objective->restore(state);
  check("dino", *objective, draws(3, 12));
}

TEST(Golden, Simclr) {
  std::vector<NamedMatrix> state;
  add_head("head", 6, 96, state);
  const Matrix<float> shared = draws(7, 1);
  Matrix<float> e = draws(8, 49);
  for (size_t i = 0; i < 49; ++i)
    for (size_t j = 0; j < kWidth; ++j) e(i, j) = shared(0, j) + 0.3f * e(i, j);
  Pool pool(1);
  for (const auto& [name, preset] :
       {std::pair{"simclr", Preset::native}, {"simclr_lib", Preset::lib}}) {
    ObjectiveContext c = context();
    c.preset = preset;
    const auto objective = make_objective("simclr", c);
    objective->restore(state);
    const Matrix<float> bank = draws(9, 256 * 49);
    Matrix<float> kept(bank.rows(), objective->support_width(kWidth));
    objective->reduce_support(bank, kept);
    objective->prepare(kept, 49, pool);
    check(name, *objective, e);
  }
}

TEST(Golden, DeepCluster) {
  std::vector<NamedMatrix> state;
  add_head("head", 10, 128, state, Head::Form::weight_normed);
  Matrix<float> prototypes = draws(11, 9000, 128);
  for (size_t i = 0; i < 9000 * 128; ++i) prototypes.data()[i] *= 0.2f;
  state.push_back({"prototypes", std::move(prototypes)});
  const auto objective = make_objective("deepcluster", context());
  objective->restore(state);
  check("deepcluster", *objective, draws(12, 10));
}

}  // namespace
}  // namespace fungi
