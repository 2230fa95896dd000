// SPDX-License-Identifier: Apache-2.0
// The coarse half of the exact search: goes through blocks of the database with cheap products and
// names the rows that could still be among the nearest. It may name too many; it never leaves one
// out. knn.h has the proof. Internal to the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/knn.h"
#include "fungi/search/scan_kernel.h"

namespace fungi {
namespace search {

constexpr double kUnit = 0x1p-24;         // half a unit in the last place of f32
constexpr double kRounding = 32 * kUnit;  // covers the few f32 operations that put a bound together
constexpr double kTiny = 0x1p-120;  // per column: what underflow and flushed denormals may lose
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Brings the beginning of a row near.
inline void prefetch(const float* row, size_t width) {
  const char* at = reinterpret_cast<const char*>(row);
  for (size_t b = 0; b < std::min<size_t>(width * sizeof(float), 4096); b += 64)
    __builtin_prefetch(at + b);
}

ScanKind resolve(ScanKind kind);  // never automatic

// A block of the database as a scan wants it, and what bounds have to know of each row.
struct ScanRows {
  size_t count = 0;
  std::vector<double> norms;  // of the rows as they are
  std::vector<float> bias, scale, residual, norm;
  std::vector<int32_t> offset;
  Buffer codes;  // of the scan on bytes
};

// The mean of some rows spread over the database: near it, lengths and therefore rounding errors
// are small. Empty where it would be of no use.
std::vector<float> centre_of(View<const float> database, Metric metric);

class Scan {
 public:
  // `centre` [width] is subtracted from rows and queries (Euclidean only; it moves nothing but the
  // rounding).
  static std::unique_ptr<Scan> make(ScanKind kind, const ExactKey& exact, std::vector<float> centre,
                                    Pool& pool);
  virtual ~Scan() = default;

  // Prepares queries; their numbers in error messages start at first_row.
  void load_queries(View<const float> queries, size_t first_row, Pool& pool);
  // Prepares a block of the database, replacing the one before.
  void load_rows(View<const float> rows, size_t first_row, Pool& pool);
  // What load_rows() has prepared, for use_rows() of scans made alike: those on bytes only.
  ScanRows take_rows() { return std::exchange(own_rows_, {}); }
  void use_rows(const ScanRows& rows) { loaded_ = &rows; }  // borrowed

  size_t parts() const { return (loaded_->count + part_rows() - 1) / part_rows(); }
  virtual size_t part_rows() const = 0;   // rows scanned by one call of scan()
  virtual size_t query_rows() const = 0;  // queries taken by one call of scan()

  // Scans queries [query, query + count) against part `part` of the loaded rows. hits:
  // [count][part_rows()], row numbers counted from the part's first row; counts: [count] up to the
  // next multiple of kQueryGroups.
  virtual void scan(size_t query, size_t count, size_t part, unsigned worker, Hit* hits,
                    uint32_t* counts) = 0;

  // A key on the scale of hit.lower: a hit with lower > high has certainly a greater key, one with
  // upper() < low certainly a smaller one.
  struct KeyRange {
    float low, high;
  };
  KeyRange range(size_t query, double key) const;

  // Rows whose key is greater than `key` need not be named from now on.
  void set_limit(size_t query, double key);
  // The same for rows further than some rows of which the largest upper bound is `upper`.
  void set_limit_above(size_t query, float upper);
  // For another search of the same queries; not beside a scan of the same query.
  void forget_limit(size_t query);
  // The other end of the bound: the key of a hit of the loaded block, on the scale of hit.lower, is
  // not greater. `row` counts from the block's first row.
  float upper(size_t query, size_t row, float lower) const;

  // Whether a hit of an earlier, wider limit is still one.
  bool may_hold(size_t query, const Hit& hit) const {
    return !(hit.lower > query_terms_[query].limit);
  }

  double row_norm(size_t row) const { return loaded_->norms[row]; }  // of the loaded block
  double query_norm(size_t query) const { return query_norms_[query]; }

 protected:
  Scan(const ExactKey& exact, std::vector<float> centre);
  virtual void reserve_queries(size_t count) = 0;
  virtual void reserve_rows(size_t count) = 0;
  // Takes over the prepared row v [padded_width_] and sets terms.
  virtual void store_query(size_t query, const float* v, double norm) = 0;
  virtual void store_row(size_t row, const float* v, double norm) = 0;
  virtual void finish_rows(Pool&) {}

  // With x̂ = what the scan computes with: its scale, length, distance from x, and the relative
  // error of its sums.
  void set_query_terms(size_t query, double scale, double norm, double residual, double sum_error);
  void set_row_terms(size_t row, double scale, double residual, double norm, int32_t offset);
  RowTerms terms_from(size_t row) const;

  const ExactKey exact_;
  const size_t width_, padded_width_;
  size_t query_count_ = 0;
  ScanRows own_rows_;
  const ScanRows* loaded_ = &own_rows_;
  std::vector<QueryTerms> query_terms_;

 private:
  double prepare(const float* row, double norm, float* v) const;  // returns the length of v

  std::vector<float> centre_;
  double weight_;  // how many times the key holds the dot product: 2 for squared distances, else 1
  std::vector<double> query_norms_, query_square_;
};

// The lower bound took away what rounding and the sum of the bound in f32 may amount to; twice that
// leads to the other side.
inline float Scan::upper(size_t query, size_t row, float lower) const {
  const QueryTerms& q = query_terms_[query];
  const double norm = loaded_->norm[row], slack = double(q.norm) * loaded_->residual[row] + q.residual * norm;
  if (!std::isfinite(slack) || !std::isfinite(lower)) return kInfinity;
  const double value = lower + 2 * slack + 4 * (kRounding * norm * norm + kTiny * double(width_));
  return float(value + std::fabs(value) * 0x1p-22);  // rounded up, in less time
}

std::unique_ptr<Scan> make_byte_scan(const ExactKey& exact, std::vector<float> centre);
std::unique_ptr<Scan> make_table_scan(bool bf16, const ExactKey& exact, std::vector<float> centre,
                                      Pool& pool);

}  // namespace search
}  // namespace fungi
