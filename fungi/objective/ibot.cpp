// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/ibot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/objective/dino.h"

namespace fungi {

void IbotParameters::visit(ParameterVisitor& visitor) {
  visitor.count("width", width, 2);
  visitor.positive("teacher_temperature", teacher_temperature);
  visitor.positive("student_temperature", student_temperature);
  visitor.flag("skip_same_view", skip_same_view);
  visitor.fraction("mask_ratio", mask_ratio);
  visitor.positive("patch_weight", patch_weight);
  visitor.views(views);
}

std::vector<uint8_t> token_mask(uint64_t seed, std::string_view draw, uint64_t sample, size_t view,
                                size_t tokens, double ratio) {
  const RandomStream stream(seed, fmt::format("mask/{}", draw), sample);
  std::vector<uint32_t> order(tokens);
  std::iota(order.begin(), order.end(), 0u);
  const auto key = [&](uint32_t token) { return stream.bits(view * uint64_t{1 << 20} + token); };
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) { return key(x) < key(y); });
  std::vector<uint8_t> mask(tokens, 0);
  const size_t hidden = static_cast<size_t>(std::llround(ratio * static_cast<double>(tokens)));
  for (size_t i = 0; i < std::min(hidden, tokens); ++i) mask[order[i]] = 1;
  return mask;
}

Ibot::Ibot(const IbotParameters& parameters, size_t embedding_width, size_t token_width,
           uint64_t seed, std::string name)
    : name_(std::move(name)),
      parameters_(parameters),
      counts_(view_counts(parameters.views, name_)) {
  if (token_width == 0)
    fail("patch tokens are needed, but their width is unknown", name_,
         "choose a backbone that gives patch tokens");
  const auto head = [&](const char* role, size_t inputs) {
    return Head::random(Head::Form::affine, seed, "ibot", role, parameters.width, inputs);
  };
  student_ = head("student", embedding_width);
  teacher_ = head("teacher", embedding_width);
  patch_student_ = head("patch_student", token_width);
  patch_teacher_ = head("patch_teacher", token_width);
}

std::vector<ViewRequest> Ibot::views() const {
  return {{.plan = parameters_.views,
           .draw = "ibot",
           .masked_views = counts_.global,
           .mask_ratio = parameters_.mask_ratio},
          {.plan = global_views(parameters_.views, counts_.global, name()),
           .draw = "ibot",
           .gradient = false}};
}

double Ibot::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  const size_t students = counts_.all(), views = students + counts_.global;
  FUNGI_ASSERT(latents.pooled.rows == views && latents.token_offsets.size() == views + 1 &&
               latents.masked.size() == latents.tokens.rows);
  const double dino = dino_term(student_, teacher_, latents.pooled.slice(0, students),
                                latents.pooled.slice(students, counts_.global),
                                parameters_.student_temperature, parameters_.teacher_temperature,
                                parameters_.skip_same_view, gradients.pooled.slice(0, students));
  return dino + patch_term(latents, gradients.tokens);
}

// Each masked patch is a DINO pair of one student and one teacher; the pairs are averaged.
double Ibot::patch_term(const Latents& latents, View<float> d_tokens) const {
  // The teacher sees the same global crops, whose tokens begin behind all of the students'.
  const size_t width = latents.tokens.cols, teachers = latents.token_offsets[counts_.all()];
  std::vector<size_t> hidden;
  for (size_t row = 0; row < latents.token_offsets[counts_.global]; ++row)
    if (latents.masked[row]) hidden.push_back(row);
  if (hidden.empty()) return 0;

  Matrix<float> unit(hidden.size(), width), teacher_unit(hidden.size(), width);
  for (size_t i = 0; i < hidden.size(); ++i) {
    std::copy_n(latents.tokens.row(hidden[i]), width, unit.row(i));
    std::copy_n(latents.tokens.row(teachers + hidden[i]), width, teacher_unit.row(i));
  }
  const std::vector<double> norms = normalise_rows(unit, unit);
  normalise_rows(teacher_unit, teacher_unit);
  const size_t d = patch_student_.width();
  Matrix<float> latent(hidden.size(), d), teacher_latent(hidden.size(), d);
  patch_student_.forward(unit, latent);
  patch_teacher_.forward(teacher_unit, teacher_latent);

  const double share = parameters_.patch_weight / static_cast<double>(hidden.size());
  Matrix<double> z(1, d), t(1, d), g(1, d);
  double loss = 0;
  for (size_t i = 0; i < hidden.size(); ++i) {
    std::copy_n(latent.row(i), d, z.data());
    std::copy_n(teacher_latent.row(i), d, t.data());
    loss += share * dino_loss(z, t, parameters_.student_temperature,
                              parameters_.teacher_temperature, false, g);
    for (size_t j = 0; j < d; ++j) latent(i, j) = static_cast<float>(share * g(0, j));
  }
  Matrix<float> d_hidden(hidden.size(), width);
  patch_student_.backward(latent, d_hidden);
  normalise_rows_backward(unit, norms, d_hidden);
  for (size_t i = 0; i < hidden.size(); ++i)
    std::copy_n(d_hidden.row(i), width, d_tokens.row(hidden[i]));
  return loss;
}

std::vector<NamedMatrix> Ibot::state() const {
  std::vector<NamedMatrix> state;
  student_.save("student", state);
  teacher_.save("teacher", state);
  patch_student_.save("patch_student", state);
  patch_teacher_.save("patch_teacher", state);
  return state;
}

void Ibot::restore(const std::vector<NamedMatrix>& state) {
  std::vector<std::string> known;
  for (const char* role : {"student", "teacher", "patch_student", "patch_teacher"}) {
    known.push_back(std::string(role) + ".weight");
    known.push_back(std::string(role) + ".bias");
  }
  check_state_names(state, known, name());
  student_.load("student", state, name(), parameters_.width_stated);
  teacher_.load("teacher", state, name(), parameters_.width_stated);
  patch_student_.load("patch_student", state, name());  // of a width of their own, if need be
  patch_teacher_.load("patch_teacher", state, name());
  check_same_width(student_, teacher_, name());
  check_same_width(patch_student_, patch_teacher_, name());
  parameters_.width = student_.width();
}

}  // namespace fungi
