// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fungi/comm/bytes.h"
#include "fungi/search/kmeans_steps.h"
#include "fungi/search/ranks.h"

namespace fungi {
namespace {

using search::Best;

constexpr size_t kGrain = 64;  // queries

// The k best keys of each query among the own rows, which may be fewer.
std::vector<Best> own_best(View<const float> own, size_t first, View<const float> queries, size_t k,
                           const search::ExactKey& exact, Pool& pool, const KnnOptions& options) {
  if (k == 0 || queries.rows == 0) return {};
  const Neighbours found = knn(own, queries, k, pool, options);
  std::vector<Best> best(queries.rows * k);
  pool.parallel_for(queries.rows, kGrain, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i)
      for (size_t b = 0; b < k; ++b) {
        const uint32_t row = found.index(i, b);
        best[i * k + b] = {exact(queries.row(i), own.row(row)), uint32_t(first) + row};
      }
  });
  return best;
}

}  // namespace

std::pair<size_t, size_t> own_rows(size_t rows, const Comm& comm) {
  const size_t blocks = (rows + search::kInertiaBlock - 1) / search::kInertiaBlock;
  const auto bound = [&](size_t rank) {
    return std::min(rows, blocks * rank / comm.size() * search::kInertiaBlock);
  };
  return {bound(comm.rank()), bound(comm.rank() + 1)};
}

Neighbours knn_on_ranks(View<const float> own, size_t first, size_t total,
                        View<const float> queries, size_t k, Pool& pool, const KnnOptions& options,
                        Comm& comm) {
  FUNGI_ASSERT(!options.skip_same_row);
  search::check_neighbours(k, total);
  const search::ExactKey exact(options.metric, queries.cols);
  const size_t mine = std::min(k, own.rows);
  ByteWriter out;
  out.number(mine), out.numbers(own_best(own, first, queries, mine, exact, pool, options));
  const std::vector<std::string> all = comm.gather(out.take());
  Neighbours merged{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  if (comm.first()) {
    std::vector<std::pair<size_t, std::vector<Best>>> lists;
    for (const std::string& bytes : all) {
      ByteReader in(bytes);
      const size_t theirs = in.number<size_t>();
      lists.emplace_back(theirs, in.numbers<Best>());
    }
    pool.parallel_for(queries.rows, kGrain, [&](size_t begin, size_t end, unsigned) {
      std::vector<Best> candidates;
      for (size_t i = begin; i < end; ++i) {
        candidates.clear();
        for (const auto& [count, best] : lists)
          candidates.insert(candidates.end(), best.begin() + ptrdiff_t(i * count),
                            best.begin() + ptrdiff_t((i + 1) * count));
        std::partial_sort(candidates.begin(), candidates.begin() + ptrdiff_t(k), candidates.end());
        for (size_t b = 0; b < k; ++b) {
          merged.index(i, b) = candidates[b].row;
          merged.value(i, b) = exact.value(candidates[b].key);
        }
      }
    });
  }
  ByteWriter answer;
  answer.matrix<uint32_t>(merged.index), answer.matrix<double>(merged.value);
  const std::string bytes = comm.broadcast(comm.first() ? answer.take() : "");
  ByteReader in(bytes);
  merged.index = in.matrix<uint32_t>();
  merged.value = in.matrix<double>();
  return merged;
}

}  // namespace fungi
