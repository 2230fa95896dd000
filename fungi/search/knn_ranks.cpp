// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fungi/comm/bytes.h"
#include "fungi/search/kmeans_steps.h"
#include "fungi/search/ranks.h"

namespace fungi {
namespace {

using search::Best;

constexpr size_t kGrain = 64;  // queries
constexpr Comm::Tag kLists = 7;

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

std::pair<size_t, size_t> own_rows(size_t rows, size_t rank, size_t ranks) {
  const size_t blocks = (rows + search::kInertiaBlock - 1) / search::kInertiaBlock;
  const auto bound = [&](size_t r) {
    return std::min(rows, blocks * r / ranks * search::kInertiaBlock);
  };
  return {bound(rank), bound(rank + 1)};
}

Neighbours knn_on_ranks(View<const float> own, size_t first, size_t total,
                        View<const float> queries, size_t k, Pool& pool, const KnnOptions& options,
                        Comm& comm) {
  FUNGI_ASSERT(!options.skip_same_row);
  search::check_neighbours(k, total);
  const search::ExactKey exact(options.metric, queries.cols);
  const size_t mine = std::min(k, own.rows);
  const std::vector<Best> best = own_best(own, first, queries, mine, exact, pool, options);
  // Each rank merges a share of the queries.
  const auto bound = [&](size_t rank) { return queries.rows * rank / comm.size(); };
  const size_t begin = bound(comm.rank()), end = bound(comm.rank() + 1);
  std::vector<std::pair<size_t, std::vector<Best>>> lists(comm.size());
  for (size_t r = 0; r < comm.size(); ++r) {
    std::vector<Best> theirs(best.begin() + ptrdiff_t(bound(r) * mine),
                             best.begin() + ptrdiff_t(bound(r + 1) * mine));
    if (r == comm.rank()) {
      lists[r] = {mine, std::move(theirs)};
      continue;
    }
    ByteWriter out;
    out.number(mine), out.numbers(theirs);
    comm.send(r, kLists, out.take());
  }
  for (size_t r = 0; r < comm.size(); ++r) {
    if (r == comm.rank()) continue;
    const std::string bytes = comm.receive(r, kLists);
    ByteReader in(bytes);
    const size_t count = in.number<size_t>();
    lists[r] = {count, in.numbers<Best>()};
  }
  Neighbours merged{Matrix<uint32_t>(end - begin, k), Matrix<double>(end - begin, k)};
  pool.parallel_for(end - begin, kGrain, [&](size_t from, size_t to, unsigned) {
    std::vector<Best> candidates;
    for (size_t i = from; i < to; ++i) {
      candidates.clear();
      for (const auto& [count, list] : lists)
        candidates.insert(candidates.end(), list.begin() + ptrdiff_t(i * count),
                          list.begin() + ptrdiff_t((i + 1) * count));
      std::partial_sort(candidates.begin(), candidates.begin() + ptrdiff_t(k), candidates.end());
      for (size_t b = 0; b < k; ++b) {
        merged.index(i, b) = candidates[b].row;
        merged.value(i, b) = exact.value(candidates[b].key);
      }
    }
  });
  ByteWriter answer;
  answer.matrix<uint32_t>(merged.index), answer.matrix<double>(merged.value);
  Neighbours all{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  size_t at = 0;
  for (const std::string& bytes : comm.all_gather(answer.take())) {
    ByteReader in(bytes);
    const auto index = in.matrix<uint32_t>();
    const auto value = in.matrix<double>();
    std::copy_n(index.data(), index.rows() * k, all.index.data() + at * k);
    std::copy_n(value.data(), value.rows() * k, all.value.data() + at * k);
    at += index.rows();
  }
  return all;
}

}  // namespace fungi
