// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"

namespace fungi {

const kernel::Kernel& objective_kernel() { return kernel::kernel_for(best_isa(), Precision::f32); }

void multiply(View<const float> x, const kernel::PackedMatrix& w, const float* bias,
              View<float> y) {
  Buffer scratch;
  kernel::multiply(objective_kernel(), x, w, bias, y, scratch);
}

Head::Head(Form form, Matrix<float> weight, Matrix<float> bias)
    : form_(form), weight_(std::move(weight)), bias_(std::move(bias)) {
  FUNGI_ASSERT(form == Form::weight_normed ? bias_.empty()
                                           : bias_.rows() == 1 && bias_.cols() == weight_.rows());
  const kernel::Kernel& kernel = objective_kernel();
  if (form == Form::affine) {
    packed_ = kernel::pack(kernel, weight_);
    packed_transposed_ = kernel::pack(kernel, weight_, true);
  } else {
    Matrix<float> unit(weight_.rows(), weight_.cols());
    normalise_rows(weight_, unit);
    packed_ = kernel::pack(kernel, unit);
    packed_transposed_ = kernel::pack(kernel, unit, true);
  }
}

Head Head::draw(Form form, TorchRandom& random, size_t width, size_t inputs) {
  const float bound = static_cast<float>(1 / std::sqrt(static_cast<double>(inputs)));
  Matrix<float> weight(width, inputs), bias;
  for (size_t i = 0; i < width * inputs; ++i) weight.data()[i] = random.uniform(-bound, bound);
  if (form == Form::affine) {
    bias = Matrix<float>(1, width);
    for (size_t i = 0; i < width; ++i) bias.data()[i] = random.uniform(-bound, bound);
  }
  return Head(form, std::move(weight), std::move(bias));
}

Head Head::none(size_t inputs) {
  Head head;
  head.form_ = Form::none;
  head.inputs_ = inputs;
  return head;
}

namespace {

void copy_rows(View<const float> from, View<float> to) {
  FUNGI_ASSERT(from.rows == to.rows && from.cols == to.cols);
  for (size_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.cols, to.row(i));
}

// The weight and its two packed copies, and the rows that a loss has of every view. Estimated
// before memory is taken: a width is a number that is easily mistyped.
void check_memory(std::string_view objective, size_t width, size_t inputs) {
  constexpr double kWeights = 3 * sizeof(float), kRows = 1536, kGigabyte = 1e9;
  const double needed = double(width) * (kWeights * double(inputs) + kRows),
               here = double(cpu().memory_bytes);
  if (here > 0 && needed > here / 4)
    fail(
        fmt::format("width={} would take about {:.1f} GB: expected at most a quarter of the {:.1f} "
                    "GB of this machine",
                    width, needed / kGigabyte, here / kGigabyte),
        std::string(objective), "choose a smaller width");
}

}  // namespace

Head Head::random(Form form, uint64_t seed, std::string_view objective, std::string_view role,
                  size_t width, size_t inputs) {
  check_memory(objective, width, inputs);
  const RandomStream stream(seed, fmt::format("head/{}/{}", objective, role));
  TorchRandom random(static_cast<uint32_t>(stream.bits(0)));
  return draw(form, random, width, inputs);
}

void Head::forward(View<const float> x, View<float> z) const {
  if (form_ == Form::none) return copy_rows(x, z);
  multiply(x, packed_, bias_.empty() ? nullptr : bias_.data(), z);
}

void Head::backward(View<const float> d_z, View<float> d_x) const {
  if (form_ == Form::none) return copy_rows(d_z, d_x);
  multiply(d_z, packed_transposed_, nullptr, d_x);
}

void Head::save(const std::string& prefix, std::vector<NamedMatrix>& state) const {
  if (form_ == Form::none) return;
  state.push_back({prefix + ".weight", weight_.copy()});
  if (!bias_.empty()) state.push_back({prefix + ".bias", bias_.copy()});
}

bool Head::load(const std::string& prefix, const std::vector<NamedMatrix>& state,
                const std::string& objective, bool keep_width) {
  const Matrix<float>* weight = find_state(state, prefix + ".weight");
  const Matrix<float>* bias = find_state(state, prefix + ".bias");
  if (!weight && !bias) return false;
  const std::string place = objective + " " + prefix;
  if (form_ == Form::none)
    fail("a head is given, but head=none leaves it out", place, "leave out one of the two");
  if (!weight || (form_ == Form::affine && !bias))
    fail("weight and bias of a head must be given together", place);
  if (form_ == Form::weight_normed && bias) fail("this head has no bias", place);
  if (weight->rows() == 0 || weight->cols() != inputs())
    fail(fmt::format("expected a weight of [width, {}], found [{}, {}]", inputs(), weight->rows(),
                     weight->cols()),
         place, "the columns of a head must match the embedding width of the backbone");
  if (keep_width && weight->rows() != width())
    fail(fmt::format("width={} is stated, but the head given has {} rows", width(), weight->rows()),
         place, "leave the width out, or give a head of that width");
  if (bias && bias->rows() * bias->cols() != weight->rows())
    fail(fmt::format("expected {} biases, found {}", weight->rows(), bias->rows() * bias->cols()),
         place);
  Matrix<float> row;
  if (bias) {
    row = Matrix<float>(1, weight->rows());
    for (size_t i = 0; i < weight->rows(); ++i)
      row(0, i) = (*bias)(i / bias->cols(), i % bias->cols());
  }
  *this = Head(form_, weight->copy(), std::move(row));
  return true;
}

void LatentParameters::visit(ParameterVisitor& visitor, bool normalises, size_t& width) {
  if (visitor.wants(head)) visitor.count("width", width, 2);
  if (visitor.wants(normalise != normalises)) visitor.flag("normalise", normalise);
  size_t form = head ? 0 : 1;
  if (visitor.wants(!head)) visitor.choice("head", form, {"linear", "none"});
  head = form == 0;
}

Head LatentParameters::draw_head(uint64_t seed, std::string_view objective, std::string_view role,
                                 size_t width, size_t inputs) const {
  return head ? Head::random(Head::Form::affine, seed, objective, role, width, inputs)
              : Head::none(inputs);
}

HeadInput::HeadInput(View<const float> embeddings, bool normalise) : rows_(embeddings) {
  if (!normalise) return;
  unit_ = Matrix<float>(embeddings.rows, embeddings.cols);
  norms_ = normalise_rows(embeddings, unit_);
  rows_ = unit_;
}

void HeadInput::backward(View<float> gradient) const {
  if (!unit_.empty()) normalise_rows_backward(unit_, norms_, gradient);
}

void normalise_rows_backward(View<const float> unit, const std::vector<double>& norms,
                             View<float> gradient) {
  FUNGI_ASSERT(norms.size() == gradient.rows && unit.rows == gradient.rows &&
               unit.cols == gradient.cols);
  for (size_t i = 0; i < unit.rows; ++i) {
    double along = 0;
    for (size_t j = 0; j < unit.cols; ++j)
      along += static_cast<double>(unit(i, j)) * gradient(i, j);
    const double inverse = norms[i] > 0 ? 1 / norms[i] : 0;
    for (size_t j = 0; j < unit.cols; ++j)
      gradient(i, j) = static_cast<float>((gradient(i, j) - along * unit(i, j)) * inverse);
  }
}

const Matrix<float>* find_state(const std::vector<NamedMatrix>& state, std::string_view name) {
  for (const NamedMatrix& matrix : state)
    if (matrix.name == name) return &matrix.values;
  return nullptr;
}

void check_state_names(const std::vector<NamedMatrix>& state, const std::vector<std::string>& known,
                       const std::string& objective) {
  const auto stored = [&](std::string name) {
    std::replace(name.begin(), name.end(), '.', '-');
    return objective + "-" + name;
  };
  std::vector<std::string> choices;
  for (const std::string& name : known) choices.push_back(stored(name));
  for (const NamedMatrix& matrix : state)
    if (std::find(known.begin(), known.end(), matrix.name) == known.end())
      fail(fmt::format("there is no state matrix '{}'", stored(matrix.name)), objective,
           fmt::format("choose from: {}", list_names(choices)));
}

}  // namespace fungi
