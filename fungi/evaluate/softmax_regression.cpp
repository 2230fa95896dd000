// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/softmax_regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/evaluate/lbfgs.h"
#include "fungi/kernel/kernel.h"
#include "fungi/pca/covariance.h"
#include "fungi/pca/eigen.h"
#include "fungi/pca/eigen_kernel.h"
#include "fungi/search/metric.h"

namespace fungi {
namespace {

constexpr size_t kBlock = 512;  // rows per pair of products
constexpr size_t kGroups = 16;  // sums kept apart and added in order: fixed, whatever the threads
constexpr size_t kRotateUpTo = 1024;  // wider features keep their own axes
constexpr size_t kKeepPacked = size_t{1}
                               << 30;  // bytes of transposed rows worth keeping between steps

// Weights as the f32 operand of the scores.
kernel::PackedMatrix pack_weights(const kernel::Kernel& table, const double* w, size_t classes,
                                  size_t width) {
  Matrix<float> rounded(classes, width);
  for (size_t i = 0; i < classes * width; ++i) rounded.data()[i] = float(w[i]);
  return kernel::pack(table, rounded);
}

}  // namespace

struct SoftmaxRegression::State {
  State(size_t rows, size_t columns, Labels labels, Pool& p, Comm* others)
      : ranks(others),
        pool(p),
        table(kernel::f32_kernel()),
        wide(eigen_kernel(best_isa())),
        classes(classes_of(labels)),
        n(rows),
        d(columns),
        blocks((n + kBlock - 1) / kBlock),
        groups(std::min(kGroups, blocks)),
        places(blocks) {
    check_label_count(labels, n);
    for (size_t g = 0; g < groups; ++g)
      for (size_t b = first_block(g); b < first_block(g + 1); ++b) {
        places[b] = kept;
        if (is_own(g)) kept += rows_of(b);
      }
  }

  State(View<const float> given, Labels labels, Pool& p)
      : State(given.rows, given.cols, labels, p, nullptr) {
    held = given;
    Covariance covariance(d);
    covariance.add(held, pool);
    choose_axes(covariance.finish(pool));
    turn_rows();
    pack_rows();
  }

  State(const LoadRun& load, size_t width, Labels labels, Pool& p, Comm& others)
      : State(labels.size(), width, labels, p, &others) {
    if (Moments moments = moments_on_ranks(n, d, load, pool, others); others.first())
      choose_axes(std::move(moments));
    share_axes();
    Matrix<float> own(kept, d);
    for (size_t g = 0; g < groups; ++g)
      for (size_t b = first_block(g); is_own(g) && b < first_block(g + 1); ++b) {
        const Matrix<float> part = load(b * kBlock, rows_of(b));
        for (size_t i = 0; i < part.rows(); ++i)
          std::copy_n(part.row(i), d, own.row(places[b] + i));
      }
    held = own;
    turn_rows();
    if (axes.empty()) turned = std::move(own);
    pack_rows();
  }

  size_t first_block(size_t group) const { return blocks * group / groups; }
  size_t rows_of(size_t b) const { return std::min(kBlock, n - b * kBlock); }
  View<const float> block(size_t b) const { return held.slice(places[b], rows_of(b)); }
  kernel::PackedMatrix pack_block(size_t b) const { return kernel::pack(table, block(b), true); }

  void pack_rows() {
    if (kept * d * sizeof(float) > kKeepPacked) return;
    packed_rows.resize(blocks);
    pool.parallel_for(groups, 1, [&](size_t g, size_t, unsigned) {
      for (size_t b = first_block(g); is_own(g) && b < first_block(g + 1); ++b)
        packed_rows[b] = pack_block(b);
    });
  }

  // Turns the features so that their second moments are diagonal: then a diagonal scaling is a good
  // model of the curvature, and L-BFGS needs a fraction of the steps. Neither the loss nor ‖W‖
  // notices the turn.
  void choose_axes(Moments moments) {
    second_moment.resize(d);
    double diagonal = 0, beside = 0;
    for (size_t i = 0; i < d; ++i)
      for (size_t j = 0; j < d; ++j) {
        double& value = moments.scatter(i, j);
        value = value / double(n) + moments.mean[i] * moments.mean[j];
        if (i == j) second_moment[i] = value;
        (i == j ? diagonal : beside) += value * value;
      }
    if (d > kRotateUpTo || beside <= 1e-3 * diagonal) return;
    const Eigen eigen = largest_eigen(moments.scatter, d, pool);
    axes = Matrix<float>(d, d);
    for (size_t i = 0; i < d * d; ++i) axes.data()[i] = float(eigen.vectors.data()[i]);
    second_moment = eigen.values;
    for (double& value : second_moment) value = std::max(value, 0.0);
  }

  void share_axes() {
    ByteWriter out;
    out.numbers(second_moment), out.matrix<float>(axes);
    const std::string bytes = ranks->broadcast(out.take());
    ByteReader in(bytes);
    second_moment = in.numbers<double>();
    axes = in.matrix<float>();
  }

  void turn_rows() {
    if (axes.empty()) return;
    const kernel::PackedMatrix packed = kernel::pack(table, axes);
    turned = Matrix<float>(kept, d);
    pool.parallel_for(kept, kBlock, [&](size_t begin, size_t end, unsigned) {
      Buffer scratch;
      kernel::multiply(table, held.slice(begin, end - begin), packed, nullptr,
                       turned.view().slice(begin, end - begin), scratch);
    });
    held = turned;
  }

  // f and its gradient at w [classes, width].
  double evaluate(const std::vector<double>& w, std::vector<double>& gradient, double lambda) {
    const size_t c = classes.count();
    const kernel::PackedMatrix weights = pack_weights(table, w.data(), c, d);
    std::vector<double> loss(groups, 0.0);
    std::vector<Matrix<double>> sums(groups);
    pool.parallel_for(groups, 1, [&](size_t g, size_t, unsigned) {
      if (!is_own(g)) return;
      sums[g] = Matrix<double>(c, d);
      Buffer scratch;
      Matrix<float> scores(kBlock, c), errors(c, kBlock), part(c, d);
      std::vector<float> log_sum(kBlock);
      for (size_t b = first_block(g); b < first_block(g + 1); ++b) {
        const View<const float> x = block(b);
        kernel::multiply(table, x, weights, nullptr, scores.view().slice(0, x.rows), scratch);
        for (size_t i = 0; i < x.rows; ++i) loss[g] -= scores(i, classes.index[b * kBlock + i]);
        table.softmax(x.rows, c, scores.data(), c, log_sum.data());
        for (size_t i = 0; i < x.rows; ++i) {
          loss[g] += log_sum[i];
          scores(i, classes.index[b * kBlock + i]) -= 1.0f;
          for (size_t j = 0; j < c; ++j) errors(j, i) = scores(i, j);
        }
        kernel::PackedMatrix fresh;
        if (packed_rows.empty()) fresh = pack_block(b);
        kernel::multiply(table, {errors.data(), c, x.rows, kBlock},
                         packed_rows.empty() ? fresh : packed_rows[b], nullptr, part, scratch);
        for (size_t i = 0; i < c * d; ++i) sums[g].data()[i] += part.data()[i];
      }
    });
    put_together(loss, sums);
    return add_up(loss, sums, w, gradient, lambda);
  }

  // The same in f64 throughout: slower, for the last digits and for the proof.
  double evaluate_exactly(const std::vector<double>& w, std::vector<double>& gradient,
                          double lambda) {
    const size_t c = classes.count();
    Matrix<double> columns(d, c);
    for (size_t j = 0; j < c; ++j)
      for (size_t i = 0; i < d; ++i) columns(i, j) = w[j * d + i];
    std::vector<double> loss(groups, 0.0);
    std::vector<Matrix<double>> sums(groups);
    pool.parallel_for(groups, 1, [&](size_t g, size_t, unsigned) {
      if (!is_own(g)) return;
      sums[g] = Matrix<double>(c, d);
      Matrix<double> x(kBlock, d), scores(kBlock, c), errors(c, kBlock);
      for (size_t b = first_block(g); b < first_block(g + 1); ++b) {
        const View<const float> given = block(b);
        for (size_t i = 0; i < given.rows; ++i) std::copy_n(given.row(i), d, x.row(i));
        std::fill_n(scores.data(), kBlock * c, 0.0);
        wide.subtract_product(given.rows, c, d, x.data(), d, columns.data(), c, scores.data(), c);
        for (size_t i = 0; i < given.rows; ++i) {  // scores hold −W x
          const size_t own = classes.index[b * kBlock + i];
          double* row = scores.row(i);
          const double top = -*std::min_element(row, row + c), mine = -row[own];
          double sum = 0;
          for (size_t j = 0; j < c; ++j) sum += row[j] = std::exp(-row[j] - top);
          loss[g] += std::log(sum) + top - mine;
          for (size_t j = 0; j < c; ++j) errors(j, i) = double(j == own) - row[j] / sum;
        }
        wide.subtract_product(c, d, given.rows, errors.data(), kBlock, x.data(), d, sums[g].data(),
                              d);
      }
    });
    put_together(loss, sums);
    return add_up(loss, sums, w, gradient, lambda);
  }

  // Groups of blocks are shared among the ranks, and summed in their order by all.
  bool is_own(size_t group) const { return !ranks || group % ranks->size() == ranks->rank(); }

  void put_together(std::vector<double>& loss, std::vector<Matrix<double>>& sums) const {
    if (!ranks || ranks->alone()) return;
    ByteWriter own;
    for (size_t g = 0; g < sums.size(); ++g)
      if (is_own(g)) own.number(loss[g]), own.matrix<double>(sums[g]);
    const std::vector<std::string> all = ranks->all_gather(own.take());
    for (size_t rank = 0; rank < all.size(); ++rank) {
      ByteReader in(all[rank]);
      for (size_t g = rank; g < sums.size(); g += all.size())
        loss[g] = in.number<double>(), sums[g] = in.matrix<double>();
    }
  }

  // The means over rows and the penalty, from the groups' sums.
  double add_up(const std::vector<double>& loss, const std::vector<Matrix<double>>& sums,
                const std::vector<double>& w, std::vector<double>& gradient, double lambda) const {
    double total = 0, square = 0;
    for (double part : loss) total += part;
    for (size_t i = 0; i < w.size(); ++i) {
      double sum = 0;
      for (const Matrix<double>& part : sums) sum += part.data()[i];
      gradient[i] = sum / double(n) + lambda * w[i];
      square += w[i] * w[i];
    }
    return total / double(n) + 0.5 * lambda * square;
  }

  // w in the features' own axes ↔ w in the turned ones.
  std::vector<double> turn(const double* w, bool back) const {
    const size_t c = classes.count();
    std::vector<double> out(w, w + c * d);
    if (axes.empty()) return out;
    std::fill(out.begin(), out.end(), 0.0);
    for (size_t j = 0; j < c; ++j)
      for (size_t a = 0; a < d; ++a)
        for (size_t i = 0; i < d; ++i)
          out[j * d + (back ? i : a)] += w[j * d + (back ? a : i)] * double(axes(a, i));
    return out;
  }

  Comm* const ranks;
  Pool& pool;
  const kernel::Kernel& table;
  const EigenKernel& wide;
  Classes classes;
  const size_t n, d, blocks, groups;
  std::vector<size_t> places;  // of the first row of each block among those held
  size_t kept = 0;             // rows of own groups
  View<const float> held;
  Matrix<float> turned, axes;  // axes: one per row
  std::vector<double> second_moment;
  std::vector<kernel::PackedMatrix> packed_rows;
};

SoftmaxRegression::SoftmaxRegression(View<const float> rows, Labels labels, Pool& pool)
    : state_(std::make_unique<State>(rows, labels, pool)) {}
SoftmaxRegression::SoftmaxRegression(const LoadRun& load, size_t width, Labels labels, Pool& pool,
                                     Comm& ranks)
    : state_(std::make_unique<State>(load, width, labels, pool, ranks)) {}
SoftmaxRegression::~SoftmaxRegression() = default;

SoftmaxModel SoftmaxRegression::fit(const SoftmaxOptions& options, const SoftmaxModel* start) {
  State& s = *state_;
  const size_t c = s.classes.count(), d = s.d;
  if (!(options.lambda > 0) || !std::isfinite(options.lambda))
    fail(fmt::format("expected a positive penalty, found {}", options.lambda), "lambda", "");
  std::vector<double> w(c * d, 0.0);
  if (start) {
    if (start->labels != s.classes.labels || start->weights.rows() != c ||
        start->weights.cols() != d)
      fail(fmt::format("expected a model of the same {} classes and width {} to start from, found "
                       "{} classes and width {}",
                       c, d, start->labels.size(), start->weights.cols()),
           "start", "start from a model of the same rows, or from none");
    w = s.turn(start->weights.data(), false);
  }
  double square = 0;  // of the last gradient
  LbfgsProblem problem;
  problem.evaluate = [&](const std::vector<double>& at, std::vector<double>& gradient) {
    return s.evaluate(at, gradient, options.lambda);
  };
  problem.enough = [&](double value, const std::vector<double>& gradient) {
    square = 0;
    for (double g : gradient) square += g * g;
    return square / (2 * options.lambda) <= options.tolerance * value;
  };
  problem.inverse_curvature.resize(c * d);
  for (size_t j = 0; j < c; ++j)
    for (size_t i = 0; i < d; ++i)
      problem.inverse_curvature[j * d + i] = 1 / (s.second_moment[i] / double(c) + options.lambda);
  // First with f32 products as far as they carry, then, from where that ends, in f64: often that is
  // one evaluation which proves that it is enough.
  problem.noise = 1e-7;
  const LbfgsResult rough = minimise(problem, w, options.max_iterations);
  problem.evaluate = [&](const std::vector<double>& at, std::vector<double>& gradient) {
    return s.evaluate_exactly(at, gradient, options.lambda);
  };
  problem.noise = 1e-14;
  const LbfgsResult result = minimise(problem, w, options.max_iterations - rough.iterations);
  SoftmaxModel model{s.classes.labels,
                     Matrix<double>(c, d),
                     options.lambda,
                     result.value,
                     square / (2 * options.lambda),
                     rough.iterations + result.iterations,
                     rough.evaluations + result.evaluations,
                     result.finished};
  const std::vector<double> own = s.turn(w.data(), true);
  std::copy(own.begin(), own.end(), model.weights.data());
  return model;
}

std::vector<int64_t> predict(const SoftmaxModel& model, View<const float> rows, Pool& pool) {
  const size_t c = model.labels.size();
  if (rows.cols != model.weights.cols())
    fail(fmt::format("expected rows of width {}, found {}", model.weights.cols(), rows.cols),
         "features", "use the features the model was fitted on");
  const auto& table = kernel::f32_kernel();
  const kernel::PackedMatrix packed = pack_weights(table, model.weights.data(), c, rows.cols);
  const search::ExactKey exact(Metric::euclidean, rows.cols);
  std::vector<int64_t> out(rows.rows);
  pool.parallel_for(rows.rows, kBlock, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i)
      if (!std::isfinite(exact.norm(rows.row(i)))) fail_not_finite("features", i);
    Matrix<float> scores(end - begin, c);
    Buffer scratch;
    kernel::multiply(table, rows.slice(begin, end - begin), packed, nullptr, scores, scratch);
    for (size_t i = begin; i < end; ++i) {
      const float* row = scores.row(i - begin);
      out[i] = model.labels[size_t(std::max_element(row, row + c) - row)];
    }
  });
  return out;
}

}  // namespace fungi
