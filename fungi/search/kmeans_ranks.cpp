// SPDX-License-Identifier: Apache-2.0
// k-means of shared rows. A centre is a sum in the order of the rows: rank 0 adds its rows, hands
// the sum on to rank 1, and so forth; while it goes round, rank 0 adds up the next centres.
#include <algorithm>
#include <numeric>

#include "fungi/comm/bytes.h"
#include "fungi/search/kmeans_steps.h"
#include "fungi/search/metric.h"
#include "fungi/search/nearest_centre.h"
#include "fungi/search/ranks.h"

namespace fungi {
namespace {

constexpr Comm::Tag kSums = 3, kCentres = 4;

class SharedRows {
 public:
  SharedRows(ScratchMatrix rows, size_t width, Metric metric, Pool& pool, Comm& comm)
      : rows_(std::move(rows)), width_(width), metric_(metric), pool_(pool), comm_(comm) {
    if (rows_.rows() > 0) nearest_.emplace(rows_.view(), metric, pool);
  }

  std::vector<uint32_t> assign(View<const float> centres) {
    return nearest_ ? nearest_->assign(centres, pool_) : std::vector<uint32_t>();
  }

  bool same_everywhere(bool here) const {
    std::vector<double> others{here ? 0.0 : 1.0};
    comm_.all_reduce(others);
    return others[0] == 0;
  }

  std::vector<size_t> move_centres(const std::vector<uint32_t>& assignment,
                                   Matrix<float>& centres) const {
    const search::Members members(assignment, centres.rows());
    std::vector<double> counts(members.count.begin(), members.count.end());
    comm_.all_reduce(counts);
    const size_t rank = comm_.rank(), last = comm_.size() - 1, k = centres.rows();
    const size_t chunks = std::min(k, 4 * comm_.size());
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      const size_t begin = k * chunk / chunks, end = k * (chunk + 1) / chunks;
      Matrix<double> sums(end - begin, width_);
      if (rank > 0) {
        const std::string bytes = comm_.receive(rank - 1, kSums);
        sums = ByteReader(bytes).matrix<double>();
      }
      add(members, begin, sums);
      if (rank < last) {
        ByteWriter out;
        out.matrix<double>(sums);
        comm_.send(rank + 1, kSums, out.take());
        continue;
      }
      for (size_t j = begin; j < end; ++j)
        for (size_t c = 0; c < width_ && counts[j] > 0; ++c)
          centres(j, c) = float(sums(j - begin, c) / counts[j]);
    }
    spread_from_last(centres);
    return {counts.begin(), counts.end()};
  }

  double inertia(View<const float> centres, const std::vector<uint32_t>& assignment) const {
    std::vector<double> own;
    if (rows_.rows() > 0)
      own = search::inertia_parts(rows_, centres, assignment, metric_, pool_);
    const std::vector<double> all = all_of(own);
    return std::accumulate(all.begin(), all.end(), 0.0);
  }

  // One after the other, by rank.
  template <class T>
  std::vector<T> all_of(const std::vector<T>& own) const {
    ByteWriter out;
    out.numbers(own);
    std::vector<T> all;
    for (const std::string& bytes : comm_.all_gather(out.take())) {
      const std::vector<T> part = ByteReader(bytes).numbers<T>();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  void add(const search::Members& members, size_t begin, Matrix<double>& sums) const {
    const size_t parts = (width_ + search::kColumnBlock - 1) / search::kColumnBlock;
    pool_.parallel_for(sums.rows() * parts, 1, [&](size_t task, size_t, unsigned) {
      const size_t j = task / parts, first = task % parts * search::kColumnBlock;
      const size_t columns = std::min(search::kColumnBlock, width_ - first);
      search::add_members(rows_, members, begin + j, first, columns, sums.row(j) + first);
    });
  }

  void spread_from_last(Matrix<float>& centres) const {
    const size_t last = comm_.size() - 1;
    std::string bytes;
    if (comm_.rank() == last) {
      ByteWriter out;
      out.matrix<float>(centres);
      bytes = out.take();
      if (last > 0) comm_.send(0, kCentres, bytes);
    }
    if (comm_.first() && last > 0) bytes = comm_.receive(last, kCentres);
    bytes = comm_.broadcast(std::move(bytes));
    centres = ByteReader(bytes).matrix<float>();
  }

  ScratchMatrix rows_;
  size_t width_;
  Metric metric_;
  Pool& pool_;
  Comm& comm_;
  std::optional<search::NearestCentre> nearest_;
};

KMeans run(SharedRows& rows, Matrix<float> centres, const KMeansOptions& o, size_t restart) {
  KMeans result;
  result.centres = std::move(centres);
  result.assignment = rows.assign(result.centres);
  bool split = false;
  while (result.iterations < o.iterations) {
    ++result.iterations;
    std::vector<size_t> count = rows.move_centres(result.assignment, result.centres);
    split = o.empty == EmptyClusters::split && search::fill_empty(count, result.centres);
    std::vector<uint32_t> next = rows.assign(result.centres);
    const bool settled = rows.same_everywhere(next == result.assignment);
    result.assignment = std::move(next);
    search::report(o, restart * o.iterations + (settled ? o.iterations : result.iterations));
    if (settled) break;
  }
  if (split) {
    rows.move_centres(result.assignment, result.centres);
    result.assignment = rows.assign(result.centres);
  }
  result.inertia = rows.inertia(result.centres, result.assignment);
  return result;
}

std::vector<size_t> numbers(size_t first, size_t last) {
  std::vector<size_t> all(last - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

KMeans kmeans_on_ranks(size_t total, size_t width, const LoadRows& load,
                       const KMeansOptions& options, Pool& pool, Comm& comm) {
  FUNGI_ASSERT(!options.initial.data);
  search::check_kmeans(total, width, options);
  const std::vector<size_t> which = search::training_rows(total, options);
  const size_t trained = which.empty() ? total : which.size();
  const auto load_some = [&](std::span<const size_t> rows) {
    ScratchMatrix some = rows.empty() ? ScratchMatrix() : load(rows);
    if (!rows.empty()) search::require_finite(some, "features", pool);
    return some;
  };
  KMeans best;
  search::report(options, 0);
  const auto own = own_rows(trained, comm);
  {
    const std::vector<size_t> mine =
        which.empty() ? numbers(own.first, own.second)
                      : std::vector<size_t>(which.begin() + ptrdiff_t(own.first),
                                            which.begin() + ptrdiff_t(own.second));
    SharedRows rows(load_some(mine), width, options.metric, pool, comm);
    for (size_t restart = 0; restart < std::max<size_t>(options.restarts, 1); ++restart) {
      std::vector<size_t> drawn = search::first_centres(trained, options, restart);
      Matrix<float> centres(drawn.size(), width);
      for (size_t i = 0; i < drawn.size(); ++i) {
        const size_t row = which.empty() ? drawn[i] : which[drawn[i]];
        const ScratchMatrix one = load({&row, 1});
        std::copy_n(one.view().row(0), width, centres.row(i));
      }
      KMeans result = run(rows, std::move(centres), options, restart);
      if (restart == 0 || result.inertia < best.inertia) best = std::move(result);
    }
    best.trained_rows = trained;
    if (which.empty()) {
      best.assignment = rows.all_of(best.assignment);
      return best;
    }
  }
  const auto [first, last] = own_rows(total, comm);
  SharedRows rows(load_some(numbers(first, last)), width, options.metric, pool, comm);
  const std::vector<uint32_t> assignment = rows.assign(best.centres);
  best.inertia = rows.inertia(best.centres, assignment);
  best.assignment = rows.all_of(assignment);
  return best;
}

}  // namespace fungi
