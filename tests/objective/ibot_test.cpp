// SPDX-License-Identifier: Apache-2.0
// Oracle: complex step of the two terms that ibot.h describes.
#include "fungi/objective/ibot.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;

void expect_complex_step(size_t global_crops, double tau_s, double tau_t) {
  constexpr size_t d = 14, w = 10, t = 5, students = 4;
  const size_t views = students + global_crops;
  IbotParameters parameters;
  parameters.width = 12;
  parameters.views =
      ImageCrops{.global_crops = global_crops, .local_crops = students - global_crops};
  parameters.student_temperature = tau_s, parameters.teacher_temperature = tau_t;
  parameters.patch_weight = 0.7;
  const Ibot objective(parameters, d, w, 3);
  const std::vector<NamedMatrix> state = objective.state();
  const auto head = [&](const std::string& role, const auto& x) {
    return affine(rows_of(state_named(state, role + ".weight")),
                  rows_of(state_named(state, role + ".bias"))[0], unit(x));
  };
  const Rows<double> pooled = random_rows(views, d, 1), tokens = random_rows(views * t, w, 2);
  std::vector<uint8_t> masked(views * t, 0);
  const std::vector<size_t> hidden = {1, 3, 5, (global_crops - 1) * t + 4};
  for (const size_t i : hidden) masked[i] = 1;
  masked[global_crops * t] = 1;  // in a local crop: not an error, not part of the loss

  const auto dino_of = [&](const auto& x) {
    std::decay_t<decltype(x)> student;
    Rows<double> teacher;
    for (size_t v = 0; v < students; ++v) student.push_back(head("student", x[v]));
    for (size_t v = students; v < views; ++v) teacher.push_back(head("teacher", pooled[v]));
    return dino(student, teacher, tau_s, tau_t, false);
  };
  const auto patch_of = [&](const auto& x) {
    std::decay_t<decltype(x[0][0])> loss = 0;
    for (const size_t i : hidden) {
      std::decay_t<decltype(x)> student = {head("patch_student", x[i])};
      loss += dino(student, {head("patch_teacher", tokens[students * t + i])}, tau_s, tau_t, false);
    }
    return loss * 0.7 / 4.0;
  };

  const Matrix<float> p = matrix_of<float>(pooled), k = matrix_of<float>(tokens);
  Matrix<float> d_pooled(views, d), d_tokens(views * t, w);
  std::vector<size_t> offsets;
  for (size_t v = 0; v <= views; ++v) offsets.push_back(v * t);
  const double loss = objective.loss_and_gradient({p, k, masked, offsets}, {d_pooled, d_tokens});
  EXPECT_NEAR(loss, dino_of(pooled) + patch_of(tokens), 1e-5 * loss);
  expect_rows_near<float>(
      d_pooled, gradient(pooled, [&](const Rows<Complex>& x) { return dino_of(x); }), 1e-5);
  expect_rows_near<float>(
      d_tokens, gradient(tokens, [&](const Rows<Complex>& x) { return patch_of(x); }), 1e-5);
}

TEST(Ibot, GradientsMatchTheComplexStep) {
  for (const auto& [global_crops, tau_s, tau_t] :
       {std::tuple(size_t{2}, 0.1, 0.07), {3, 0.2, 0.05}})
    expect_complex_step(global_crops, tau_s, tau_t);
}

TEST(Ibot, EveryHeadIsOneOfItsOwn) { expect_all_differ(Ibot(IbotParameters{}, 8, 8, 1).state()); }

TEST(Ibot, TheTeacherSeesTheSameCropsWhole) {
  const std::vector<ViewRequest> views = Ibot(IbotParameters{}, 8, 8, 1).views();
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].draw, views[1].draw);
  EXPECT_EQ(views[0].masked_views, 2u);
  EXPECT_EQ(views[1].masked_views, 0u);
  EXPECT_TRUE(views[0].gradient);
  EXPECT_FALSE(views[1].gradient);
  EXPECT_EQ(view_counts(views[1].plan, "ibot").local, 0u);
  EXPECT_THROW(Ibot(IbotParameters{}, 8, 0, 1), Error);
}

TEST(TokenMask, HidesTheAskedShareAndIsAFunctionOfItsArguments) {
  const auto count = [](const std::vector<uint8_t>& mask) {
    return std::count(mask.begin(), mask.end(), 1);
  };
  const std::vector<uint8_t> mask = token_mask(1, "ibot", 7, 0, 196, 0.3);
  EXPECT_EQ(count(mask), 59);
  EXPECT_EQ(mask, token_mask(1, "ibot", 7, 0, 196, 0.3));
  EXPECT_NE(mask, token_mask(1, "ibot", 7, 1, 196, 0.3));
  EXPECT_NE(mask, token_mask(1, "ibot", 8, 0, 196, 0.3));
  EXPECT_NE(mask, token_mask(2, "ibot", 7, 0, 196, 0.3));
  EXPECT_EQ(count(token_mask(1, "ibot", 7, 0, 10, 0)), 0);
  EXPECT_EQ(count(token_mask(1, "ibot", 7, 0, 10, 1)), 10);
}

// Nor is it the mask of another view moved along: of 59 hidden tokens about 18 are hidden in both.
TEST(TokenMask, OfAViewIsIndependentOfAnothers) {
  const std::vector<uint8_t> first = token_mask(1, "ibot", 7, 0, 196, 0.3);
  for (const size_t view : {1u, 2u, 5u}) {
    const std::vector<uint8_t> mask = token_mask(1, "ibot", 7, view, 196, 0.3);
    for (size_t shift = 0; shift < 196; ++shift) {
      size_t both = 0;
      for (size_t t = 0; t < 196; ++t) both += mask[t] && first[(t + shift) % 196];
      EXPECT_LT(both, 36u) << "view " << view << " moved by " << shift;
    }
  }
}

}  // namespace
}  // namespace fungi
