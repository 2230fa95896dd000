// SPDX-License-Identifier: Apache-2.0
#include "fungi/projection/projection.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/checkpoint/sha256.h"
#include "fungi/projection/kinds.h"

namespace fungi {
namespace {

constexpr ProjectionKind kKinds[] = {ProjectionKind::sign,     ProjectionKind::sign_reference,
                                     ProjectionKind::gaussian, ProjectionKind::sparse,
                                     ProjectionKind::factored, ProjectionKind::matrix,
                                     ProjectionKind::none};
constexpr size_t kMostRows = size_t{1} << 24;  // more would not be smaller than any gradient

}  // namespace

const char* to_string(ProjectionKind kind) {
  switch (kind) {
    case ProjectionKind::sign:
      return "sign";
    case ProjectionKind::sign_reference:
      return "sign_reference";
    case ProjectionKind::gaussian:
      return "gaussian";
    case ProjectionKind::sparse:
      return "sparse";
    case ProjectionKind::factored:
      return "factored";
    case ProjectionKind::matrix:
      return "matrix";
    case ProjectionKind::none:
      return "none";
  }
  return "";
}

std::vector<std::string> projection_names() {
  std::vector<std::string> names;
  for (const ProjectionKind kind : kKinds) names.push_back(to_string(kind));
  return names;
}

ProjectionKind parse_projection(std::string_view name) {
  for (const ProjectionKind kind : kKinds)
    if (name == to_string(kind)) return kind;
  std::string choices = "choose from:";
  for (const std::string& choice : projection_names()) choices += " " + choice;
  fail(fmt::format("there is no projection '{}'", name), "projection", choices);
}

Precision projection_precision(Precision run) {
  return run == Precision::f32 ? run : kernel::fastest_precision(best_isa());
}

std::unique_ptr<Projection> Projection::make(ProjectionOptions options, const LayerShape& layer) {
  if (layer.outputs == 0 || layer.inputs == 0)
    fail(fmt::format("expected a layer with outputs and inputs, found {}x{}", layer.outputs,
                     layer.inputs),
         "projection");
  if (options.kind != ProjectionKind::matrix && !options.matrix.empty())
    fail(fmt::format("a matrix is given, but the projection is '{}'", to_string(options.kind)),
         "projection", "choose the projection 'matrix', or give no matrix");
  if (options.kind == ProjectionKind::matrix) {
    if (options.matrix.empty() || options.matrix.cols() != layer.gradient_length())
      fail(fmt::format("expected a matrix of [rows, {}], found [{}, {}]", layer.gradient_length(),
                       options.matrix.rows(), options.matrix.cols()),
           "projection",
           fmt::format("the gradient of a {}x{} layer {} bias has {} entries", layer.outputs,
                       layer.inputs, layer.bias ? "with" : "without", layer.gradient_length()));
  } else if (options.kind != ProjectionKind::none &&
             (options.rows == 0 || options.rows > kMostRows)) {
    fail(fmt::format("expected 1 to {} rows, found {}", kMostRows, options.rows), "projection",
         "the embedding width is the usual choice");
  }
  // A user's matrix is too large to be kept with a store: its sum is, so that another one is
  // noticed.
  std::string matrix_sha256;
  if (const Matrix<float>& m = options.matrix; options.kind == ProjectionKind::matrix)
    matrix_sha256 = sha256(std::as_bytes(std::span(m.data(), m.rows() * m.cols())));
  std::unique_ptr<Projection> made;
  switch (options.kind) {
    case ProjectionKind::none:
      made = make_unprojected(options, layer);
      break;
    case ProjectionKind::factored:
      made = make_factored_projection(options, layer);
      break;
    default:
      made = make_dense_projection(std::move(options), layer);
  }
  made->matrix_sha256_ = std::move(matrix_sha256);
  return made;
}

Projection::Projection(const ProjectionOptions& options, const LayerShape& layer, size_t rows)
    : kind_(options.kind), layer_(layer), rows_(rows), seed_(options.seed) {}

void Projection::project(std::span<const GradientFactors> samples, View<float> y,
                         Pool& pool) const {
  if (y.rows != samples.size() || y.cols != rows_)
    fail(fmt::format("expected room for {} x {} numbers, found {} x {}", samples.size(), rows_,
                     y.rows, y.cols),
         "Projection::project");
  for (const GradientFactors& sample : samples)
    if (sample.b.rows != sample.a.rows || sample.b.cols != layer_.outputs ||
        sample.a.cols != layer_.inputs)
      fail(fmt::format("expected factors [t, {}] and [t, {}], found {} x {} and {} x {}",
                       layer_.outputs, layer_.inputs, sample.b.rows, sample.b.cols, sample.a.rows,
                       sample.a.cols),
           "Projection::project");
  const std::vector<Piece> pieces = split(samples.size(), pool.threads());
  pool.parallel_for(pieces.size(), 1, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i) run(samples, pieces[i], y);
  });
}

void Projection::project_pairs(View<const float> b, View<const float> a, Precision precision,
                               View<float> y, Pool& pool) const {
  if (b.rows != a.rows || b.cols != layer_.outputs || a.cols != layer_.inputs || y.rows != b.rows ||
      y.cols != rows_)
    fail(fmt::format("expected pairs [n, {}] and [n, {}] and room for [n, {}], found {} x {}, {} x "
                     "{} and {} x {}",
                     layer_.outputs, layer_.inputs, rows_, b.rows, b.cols, a.rows, a.cols, y.rows,
                     y.cols),
         "Projection::project_pairs");
  if (b.rows > 0) run_pairs(b, a, precision, y, pool);
}

void Projection::run_pairs(View<const float> b, View<const float> a, Precision, View<float> y,
                           Pool& pool) const {
  std::vector<GradientFactors> samples;
  for (size_t i = 0; i < b.rows; ++i) samples.push_back({b.slice(i, 1), a.slice(i, 1)});
  project(samples, y, pool);
}

double normalise(std::span<float> y) {
  double square = 0;
  for (const float value : y) square += static_cast<double>(value) * value;
  const double norm = std::sqrt(square);
  if (norm > 0 && std::isfinite(norm))
    for (float& value : y) value = static_cast<float>(value / norm);
  return norm;
}

}  // namespace fungi
