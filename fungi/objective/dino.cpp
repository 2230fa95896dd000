// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/dino.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/objective/softmax.h"

namespace fungi {

void DinoParameters::visit(ParameterVisitor& visitor) {
  latent.visit(visitor, true, width);
  size_t heads = shared_heads ? 1 : 0;
  if (visitor.wants(shared_heads)) visitor.choice("heads", heads, {"independent", "shared"});
  shared_heads = heads == 1;
  visitor.positive("teacher_temperature", teacher_temperature);
  visitor.positive("student_temperature", student_temperature);
  visitor.flag("skip_same_view", skip_same_view);
  visitor.views(views);
}

double dino_loss(View<const double> student, View<const double> teacher, double student_temperature,
                 double teacher_temperature, bool skip_same_view, View<double> gradient) {
  const size_t width = student.cols;
  Matrix<double> t(teacher.rows, width);
  for (size_t g = 0; g < teacher.rows; ++g)
    softmax(width, teacher.row(g), teacher_temperature, t.row(g));
  std::vector<double> p(width);
  double loss = 0;
  for (size_t v = 0; v < student.rows; ++v) {
    const double lse = softmax(width, student.row(v), student_temperature, p.data());
    std::fill_n(gradient.row(v), width, 0.0);
    for (size_t g = 0; g < teacher.rows; ++g) {
      if (skip_same_view && g == v) continue;
      loss += cross_entropy(width, t.row(g), student.row(v), student_temperature, lse);
      for (size_t j = 0; j < width; ++j) gradient(v, j) += (p[j] - t(g, j)) / student_temperature;
    }
  }
  return loss;
}

double dino_term(const Head& student_head, const Head& teacher_head, View<const float> student,
                 View<const float> teacher, double student_temperature, double teacher_temperature,
                 bool skip_same_view, View<float> d_student, bool normalise) {
  const size_t width = student_head.width();
  const HeadInput input(student, normalise), teacher_input(teacher, normalise);
  Matrix<float> latent(student.rows, width), teacher_latent(teacher.rows, width);
  student_head.forward(input.rows(), latent);
  teacher_head.forward(teacher_input.rows(), teacher_latent);

  Matrix<double> z(student.rows, width), t(teacher.rows, width), g(student.rows, width);
  std::copy_n(latent.data(), z.rows() * width, z.data());
  std::copy_n(teacher_latent.data(), t.rows() * width, t.data());
  const double loss = dino_loss(z, t, student_temperature, teacher_temperature, skip_same_view, g);

  std::copy_n(g.data(), g.rows() * width, latent.data());
  student_head.backward(latent, d_student);
  input.backward(d_student);
  return loss;
}

void check_same_width(const Head& student, const Head& teacher, const std::string& objective) {
  if (student.width() != teacher.width())
    fail(fmt::format("the student head has width {}, the teacher head {}", student.width(),
                     teacher.width()),
         objective, "give both heads");
}

Dino::Dino(const DinoParameters& parameters, size_t embedding_width, uint64_t seed,
           std::string name)
    : name_(std::move(name)),
      parameters_(parameters),
      counts_(view_counts(parameters.views, name_)),
      student_(parameters.latent.draw_head(seed, "dino", "student", parameters.width,
                                           embedding_width)) {
  if (!parameters.shared_heads)
    teacher_ = parameters.latent.draw_head(seed, "dino", "teacher", parameters.width,
                                           embedding_width);
  else if (!parameters.latent.head)
    fail("heads=shared needs heads, and head=none leaves them out", name_,
         "leave out one of the two");
  if (parameters.skip_same_view && counts_.all() == 1)
    fail("one crop, which is not compared with itself, has no loss", name_,
         "raise global_crops or local_crops, or set skip_same_view=false");
}

std::vector<ViewRequest> Dino::views() const {
  return {{.plan = parameters_.views, .draw = "dino"}};
}

double Dino::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  FUNGI_ASSERT(latents.pooled.rows == counts_.all());
  return dino_term(student_, teacher(), latents.pooled, latents.pooled.slice(0, counts_.global),
                   parameters_.student_temperature, parameters_.teacher_temperature,
                   parameters_.skip_same_view, gradients.pooled, parameters_.latent.normalise);
}

std::vector<NamedMatrix> Dino::state() const {
  std::vector<NamedMatrix> state;
  student_.save("student", state);
  if (!parameters_.shared_heads) teacher_.save("teacher", state);
  return state;
}

void Dino::restore(const std::vector<NamedMatrix>& state) {
  std::vector<std::string> known{"student.weight", "student.bias"};
  if (!parameters_.shared_heads) known.insert(known.end(), {"teacher.weight", "teacher.bias"});
  check_state_names(state, known, name());
  student_.load("student", state, name(), parameters_.width_stated);
  if (!parameters_.shared_heads)
    teacher_.load("teacher", state, name(), parameters_.width_stated);
  check_same_width(student_, teacher(), name());
  parameters_.width = student_.width();
}

}  // namespace fungi
