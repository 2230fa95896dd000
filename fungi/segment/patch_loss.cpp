// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/patch_loss.h"

#include <fmt/format.h>

#include "fungi/objective/factory.h"

namespace fungi {
namespace {

// Beyond so many rows of a support, lists around centres are searched instead of all.
constexpr size_t kExactRows = 16384;

// Names of a store, "kl-head-weight", from and to those of an objective, "head.weight".
std::vector<NamedMatrix> outside(const std::string& objective, std::vector<NamedMatrix> state) {
  for (NamedMatrix& m : state) {
    std::replace(m.name.begin(), m.name.end(), '.', '-');
    m.name = objective + "-" + m.name;
  }
  return state;
}

std::vector<NamedMatrix> inside(const std::string& objective,
                                const std::vector<NamedMatrix>& state) {
  std::vector<NamedMatrix> own;
  for (const NamedMatrix& m : state) {
    if (!m.name.starts_with(objective + "-"))
      fail(fmt::format("there is no state matrix '{}'", m.name), "given",
           fmt::format("its name begins with '{}-'", objective));
    std::string name = m.name.substr(objective.size() + 1);
    std::replace(name.begin(), name.end(), '-', '.');
    own.push_back({std::move(name), m.values.copy()});
  }
  return own;
}

// Calls body(rows, d_rows) with the rows of a picture that a loss looks at, which are all but those
// of registers, and puts the gradient in its place.
template <class Body>
void look(const PatchLossContext& c, View<const float> tokens, View<float> gradient, Body body) {
  if (c.registers == 0) return body(tokens, gradient);
  const size_t classes = c.prefix - c.registers;
  Matrix<float> rows(classes + c.patches, tokens.cols), d_rows(rows.rows(), tokens.cols);
  const auto place = [&](size_t i) { return i < classes ? i : i + c.registers; };
  for (size_t i = 0; i < rows.rows(); ++i)
    std::copy_n(tokens.row(place(i)), tokens.cols, rows.row(i));
  body(rows.view(), d_rows.view());
  for (size_t i = classes; i < c.prefix; ++i) std::fill_n(gradient.row(i), tokens.cols, 0.0f);
  for (size_t i = 0; i < rows.rows(); ++i)
    std::copy_n(d_rows.row(i), tokens.cols, gradient.row(place(i)));
}

class OverPatches final : public PatchLoss {
 public:
  OverPatches(const PatchSimclrParameters& parameters, const PatchLossContext& context)
      : context_(context), loss_(parameters, context.token_width, context.seed) {}

  void gradient(View<const float> tokens, std::string_view picture, Stages& stages, Pool& alone,
                View<float> gradient) const override {
    look(context_, tokens, gradient, [&](View<const float> rows, View<float> d_rows) {
      Matrix<float> negatives;
      if (support_rows() > 0) {
        const Stages::Scope scope(stages, "neighbours");
        const Neighbours found = index_->search(rows, loss_.parameters().neighbours, alone);
        negatives = loss_.negatives(support(), found.index, picture);
      }
      const Stages::Scope scope(stages, "loss");
      loss_.loss_and_gradient(rows, negatives, d_rows);
    });
  }

  size_t support_rows() const override {
    return loss_.parameters().negatives > 0 ? loss_.parameters().support : 0;
  }

  void set_support(Matrix<float> unit_rows, Pool& pool) override {
    const size_t wanted = loss_.parameters().neighbours;
    if (unit_rows.rows() < wanted)
      fail(fmt::format("expected at least {} tokens, found {}", wanted, unit_rows.rows()),
           "support", "give tokens of at least one picture");
    IndexOptions options;
    options.metric = Metric::inner_product;
    if (unit_rows.rows() > kExactRows) options.kind = IndexKind::ivf;
    support_ = std::move(unit_rows);
    index_.emplace(Index::build(support_.view(), options, pool));
  }

  View<const float> support() const override { return support_; }
  std::vector<Parameter> parameters() const override { return list_parameters(loss_.parameters()); }
  std::vector<NamedMatrix> state() const override {
    return outside(PatchSimclr::kName, loss_.state());
  }
  void restore(const std::vector<NamedMatrix>& state) override {
    loss_.restore(inside(PatchSimclr::kName, state));
  }

 private:
  PatchLossContext context_;
  PatchSimclr loss_;
  Matrix<float> support_;
  std::optional<Index> index_;
};

// What of KL and DINO can be chosen here: the rest is about views.
const std::vector<std::string> kOwnParameters{"width", "temperature", "direction",
                                              "teacher_temperature", "student_temperature"};

bool is_own(const std::string& parameter) {
  return std::find(kOwnParameters.begin(), kOwnParameters.end(), parameter) != kOwnParameters.end();
}

// KL and DINO. To DINO the class token is the global view, and every patch a local one.
class EachPatch final : public PatchLoss {
 public:
  EachPatch(std::unique_ptr<Objective> objective, bool together, const PatchLossContext& context)
      : context_(context), objective_(std::move(objective)), together_(together) {}

  void gradient(View<const float> tokens, std::string_view, Stages& stages, Pool&,
                View<float> gradient) const override {
    const Stages::Scope scope(stages, "loss");
    look(context_, tokens, gradient, [&](View<const float> rows, View<float> d_rows) {
      for (size_t i = 0; i < rows.rows; ++i) std::fill_n(d_rows.row(i), d_rows.cols, 0.0f);
      const size_t step = together_ ? rows.rows : 1;
      for (size_t i = 0; i < rows.rows; i += step)
        objective_->loss_and_gradient({.pooled = rows.slice(i, step)},
                                      {.pooled = d_rows.slice(i, step)});
    });
  }

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> own = objective_->parameters();
    std::erase_if(own, [](const Parameter& p) { return !is_own(p.name); });
    return own;
  }
  std::vector<NamedMatrix> state() const override {
    return outside(objective_->name(), objective_->state());
  }
  void restore(const std::vector<NamedMatrix>& state) override {
    objective_->restore(inside(objective_->name(), state));
  }

 private:
  PatchLossContext context_;
  std::unique_ptr<Objective> objective_;
  bool together_;
};

}  // namespace

std::unique_ptr<PatchLoss> make_patch_loss(const std::string& specification,
                                           const PatchLossContext& context) {
  const size_t colon = std::min(specification.find(':'), specification.size());
  const std::string name = specification.substr(0, colon);
  const std::string rest = specification.substr(std::min(colon + 1, specification.size()));
  const Overrides overrides = parse_overrides(rest, name);
  if (name == PatchSimclr::kName) {
    PatchSimclrParameters parameters = patch_simclr_parameters(context.preset);
    const auto stated = [&](std::string_view key) {
      return std::any_of(overrides.begin(), overrides.end(),
                         [&](const auto& pair) { return pair.first == key; });
    };
    read_parameters(overrides, name, parameters);
    parameters.width_stated = stated("width");
    if (!stated("neighbours") && !parameters.scrambled)
      parameters.neighbours = parameters.negatives;
    return std::make_unique<OverPatches>(parameters, context);
  }
  if (name != "kl" && name != "dino")
    fail(fmt::format("there is no objective '{}' on patches", name), "objective",
         "choose from: patch_simclr, kl, dino");
  for (const auto& [parameter, value] : overrides)
    if (!is_own(parameter))
      fail(fmt::format("'{}' is no parameter of {} on patches", parameter, name), name,
           fmt::format("choose from what there is of: {}", list_names(kOwnParameters)));
  const ObjectiveContext own{.embedding_width = context.token_width,
                             .token_width = context.token_width,
                             .seed = context.seed,
                             .preset = context.preset};
  if (name == "kl")
    return std::make_unique<EachPatch>(make_objective(specification, own), false, context);
  if (context.prefix - context.registers != 1)
    fail(fmt::format("dino on patches needs one class token, found {}",
                     context.prefix - context.registers),
         name, "choose patch_simclr or kl for this model");
  const std::string views = fmt::format("global_crops=1,local_crops={}", context.patches);
  return std::make_unique<EachPatch>(
      make_objective(name + ":" + (rest.empty() ? views : rest + "," + views), own), true, context);
}

}  // namespace fungi
