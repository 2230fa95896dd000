// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.2, complex step of the loss as SPEC 2.2 writes it.
#include "fungi/objective/dino.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;

TEST(Dino, SpecificationVector) {
  const Matrix<double> student =
                           matrix_of<double>({{.10, -.20, .05}, {0, .30, -.10}, {-.25, .15, .20}}),
                       teacher = matrix_of<double>({{.05, .10, -.15}, {-.05, .20, 0}});
  Matrix<double> g(3, 3);
  EXPECT_NEAR(dino_loss(student, teacher, 0.1, 0.07, false, g), 10.5681859989, 1e-9);
  expect_rows_near<double>(g,
                           {{8.590338008, -15.19985982, 6.609521809},
                            {-2.552387464, 2.923753469, -0.3713660055},
                            {-3.347291693, -8.302078732, 11.64937043}},
                           1e-9);
}

TEST(Dino, LatentGradientMatchesTheComplexStep) {
  const Rows<double> student = random_rows(5, 40, 1, 0.3), teacher = random_rows(2, 40, 2, 0.3);
  for (const auto& [tau_s, tau_t] : {std::pair(0.1, 0.07), {0.2, 0.05}})
    for (const bool skip : {false, true}) {
      Matrix<double> g(5, 40);
      const double loss =
          dino_loss(matrix_of<double>(student), matrix_of<double>(teacher), tau_s, tau_t, skip, g);
      const auto loss_of = [&, s = tau_s, t = tau_t](const auto& x) {
        return dino(x, teacher, s, t, skip);
      };
      EXPECT_NEAR(loss, loss_of(student), 1e-11 * loss);
      expect_rows_near<double>(
          g, gradient(student, [&](const Rows<Complex>& x) { return loss_of(x); }), 1e-10);
    }
}

TEST(Dino, EmbeddingGradientMatchesTheComplexStep) {
  struct Case {
    size_t global_crops;
    double tau_s, tau_t;
    bool skip;
  };
  for (const auto& [global_crops, tau_s, tau_t, skip] :
       {Case{2, 0.1, 0.07, false}, {2, 0.1, 0.07, true}, {3, 0.2, 0.05, false}}) {
    DinoParameters parameters;
    parameters.width = 30;
    parameters.views = ImageCrops{.global_crops = global_crops, .local_crops = 5 - global_crops};
    parameters.student_temperature = tau_s, parameters.teacher_temperature = tau_t;
    parameters.skip_same_view = skip;
    const Dino objective(parameters, 18, 5);
    const std::vector<NamedMatrix> state = objective.state();
    const Rows<double> ws = rows_of(state_named(state, "student.weight")),
                       cs = rows_of(state_named(state, "student.bias")),
                       wt = rows_of(state_named(state, "teacher.weight")),
                       ct = rows_of(state_named(state, "teacher.bias"));
    const Rows<double> e = random_rows(5, 18, 11, 3);
    Rows<double> teacher;
    for (size_t g = 0; g < global_crops; ++g) teacher.push_back(affine(wt, ct[0], unit(e[g])));
    const auto loss_of = [&, s = tau_s, t = tau_t, without_same = skip](const auto& x) {
      auto student = x;
      for (auto& row : student) row = affine(ws, cs[0], unit(row));
      return dino(student, teacher, s, t, without_same);
    };
    const Matrix<float> embeddings = matrix_of<float>(e);
    Matrix<float> g(5, 18);
    const double loss = objective.loss_and_gradient({embeddings}, {g, {}});
    EXPECT_NEAR(loss, loss_of(e), 1e-5 * loss);
    expect_rows_near<float>(g, gradient(e, [&](const Rows<Complex>& x) { return loss_of(x); }),
                            1e-5);
  }
}

// With one head for both every crop agrees with itself, and the loss says little.
TEST(Dino, TheTeacherHasAHeadOfItsOwn) { expect_all_differ(Dino(DinoParameters{}, 8, 1).state()); }

TEST(Dino, StudentAndTeacherHeadsMustAgree) {
  Dino objective(DinoParameters{}, 8, 1);
  std::vector<NamedMatrix> one;
  one.push_back({"student.weight", Matrix<float>(5, 8)});
  one.push_back({"student.bias", Matrix<float>(1, 5)});
  EXPECT_THROW(objective.restore(one), Error);
}

}  // namespace
}  // namespace fungi
