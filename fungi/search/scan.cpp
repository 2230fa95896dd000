// SPDX-License-Identifier: Apache-2.0
// What both scans share: preparation of rows and the terms of the bound.
#include "fungi/search/scan.h"

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"

namespace fungi::search {
namespace {

constexpr size_t kGrain = 64;

// Lengths whose products come near the ends of the f32 range: such rows and queries are never
// excluded.
bool extreme(double norm) { return norm > 1e15 || (norm < 1e-15 && norm > 0); }
float up(double x) { return std::nextafterf(float(x), kInfinity); }
float down(double x) { return std::nextafterf(float(x), -kInfinity); }

}  // namespace

ScanKind resolve(ScanKind kind) {
  if (kind != ScanKind::automatic) return kind;
  switch (best_isa()) {
    case Isa::amx:
      return ScanKind::bf16;
    case Isa::generic:
      return ScanKind::f32;
    default:
      return ScanKind::bytes;
  }
}

std::vector<float> centre_of(View<const float> database, Metric metric) {
  if (metric != Metric::euclidean) return {};
  const size_t count = std::min<size_t>(database.rows, 256);
  std::vector<double> sum(database.cols, 0);
  for (size_t i = 0; i < count; ++i) {
    const float* row = database.row(i * database.rows / count);
    for (size_t c = 0; c < database.cols; ++c) sum[c] += row[c];
  }
  std::vector<float> mean(database.cols);
  for (size_t c = 0; c < mean.size(); ++c) {
    mean[c] = float(sum[c] / double(count));
    if (!std::isfinite(mean[c]))
      return {};  // the row with NaN is found and named when it is prepared
  }
  return mean;
}

std::unique_ptr<Scan> Scan::make(ScanKind kind, const ExactKey& exact, std::vector<float> centre,
                                 Pool& pool) {
  kind = resolve(kind);
  if (kind == ScanKind::bytes && exact.width() <= kWidestCodes)
    return make_byte_scan(exact, std::move(centre));
  return make_table_scan(kind == ScanKind::bf16, exact, std::move(centre), pool);
}

Scan::Scan(const ExactKey& exact, std::vector<float> centre)
    : exact_(exact),
      width_(exact.width()),
      padded_width_(round_up(exact.width(), 64)),
      centre_(std::move(centre)),
      weight_(exact.metric() == Metric::euclidean ? 2 : 1) {
  FUNGI_ASSERT(centre_.empty() || centre_.size() == width_);
  FUNGI_ASSERT(centre_.empty() || exact.metric() == Metric::euclidean);
}

// v = x − centre, or x / ‖x‖ for the cosine; each number rounded once to f32.
double Scan::prepare(const float* row, double norm, float* v) const {
  if (exact_.metric() == Metric::cosine) {
    const double inverse = norm > 0 ? 1 / norm : 0;
    for (size_t i = 0; i < width_; ++i) v[i] = float(double(row[i]) * inverse);
    return norm > 0 ? 1 : 0;
  }
  if (centre_.empty()) {
    std::copy(row, row + width_, v);
    return norm;
  }
  for (size_t i = 0; i < width_; ++i) v[i] = row[i] - centre_[i];
  return std::sqrt(exact_.kernel().squared_distance(width_, row, centre_.data()));
}

void Scan::load_queries(View<const float> queries, size_t first_row, Pool& pool) {
  query_count_ = queries.rows;
  query_terms_.assign(round_up(query_count_, kQueryGroups), {0, 0, 0, -kInfinity});
  query_norms_.assign(query_count_, 0);
  query_square_.assign(query_count_, 0);
  reserve_queries(query_count_);
  pool.parallel_for(query_count_, kGrain, [&](size_t begin, size_t end, unsigned) {
    std::vector<float> v(padded_width_, 0);
    for (size_t i = begin; i < end; ++i) {
      query_norms_[i] = exact_.norm(queries.row(i));
      if (!std::isfinite(query_norms_[i])) fail_not_finite("queries", first_row + i);
      const double norm = prepare(queries.row(i), query_norms_[i], v.data());
      if (exact_.metric() == Metric::euclidean) query_square_[i] = norm * norm;
      store_query(i, v.data(), norm);
    }
  });
}

void Scan::load_rows(View<const float> rows, size_t first_row, Pool& pool) {
  ScanRows& own = own_rows_;
  loaded_ = &own;
  own.count = rows.rows;
  const size_t padded = round_up(own.count, kPanelRows);
  own.norms.assign(own.count, 0);
  for (auto* terms : {&own.bias, &own.scale, &own.residual, &own.norm}) terms->assign(padded, 0);
  own.offset.assign(padded, 0);
  reserve_rows(own.count);
  pool.parallel_for(own.count, kGrain, [&](size_t begin, size_t end, unsigned) {
    std::vector<float> v(padded_width_, 0);
    for (size_t j = begin; j < end; ++j) {
      own.norms[j] = exact_.norm(rows.row(j));
      if (!std::isfinite(own.norms[j])) fail_not_finite("database", first_row + j);
      store_row(j, v.data(), prepare(rows.row(j), own.norms[j], v.data()));
    }
  });
  finish_rows(pool);
}

void Scan::set_query_terms(size_t query, double scale, double norm, double residual,
                           double sum_error) {
  // 2u·norm: the prepared row differs from the true one by the rounding of each number.
  residual = (residual + 2 * kUnit * norm) * (1 + kRounding) + (sum_error + kRounding) * norm;
  query_terms_[query] = {float(weight_ * scale), up(weight_ * residual),
                         up(weight_ * norm * (1 + kRounding)), kInfinity};
  if (extreme(norm)) query_terms_[query].residual = kInfinity;
}

void Scan::set_row_terms(size_t row, double scale, double residual, double norm, int32_t offset) {
  const double bias = exact_.metric() == Metric::euclidean ? norm * norm : 0;
  ScanRows& own = own_rows_;
  own.bias[row] = down(bias * (1 - kRounding) - kTiny * double(width_));
  own.scale[row] = float(scale);
  own.residual[row] = up((residual + 2 * kUnit * norm) * (1 + kRounding));
  own.norm[row] = up(norm * (1 + kRounding));
  if (extreme(norm)) own.residual[row] = kInfinity;
  own.offset[row] = offset;
}

RowTerms Scan::terms_from(size_t row) const {
  const ScanRows& r = *loaded_;
  return {&r.bias[row], &r.scale[row], &r.residual[row], &r.norm[row], &r.offset[row]};
}

Scan::KeyRange Scan::range(size_t query, double key) const {
  const double unit = (double(width_) + 64) * 0x1p-52, square = query_square_[query];
  return {down(key - square - 4 * unit * (std::fabs(key) + 2 * square)),
          up(key - square + unit * (std::fabs(key) + square))};
}

void Scan::set_limit(size_t query, double key) {
  float& limit = query_terms_[query].limit;
  limit = std::min(limit, range(query, key).high);
}

void Scan::forget_limit(size_t query) { query_terms_[query].limit = kInfinity; }

// Both the keys that `upper` bounds and the one that is left out are rounded sums.
void Scan::set_limit_above(size_t query, float upper) {
  const double slack =
      (double(width_) + 64) * 0x1p-50 * (std::fabs(double(upper)) + 2 * query_square_[query]);
  float& limit = query_terms_[query].limit;
  limit = std::min(limit, up(double(upper) + slack));
}

}  // namespace fungi::search
