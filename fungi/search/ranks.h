// SPDX-License-Identifier: Apache-2.0
// Neighbours and clusters of rows that are shared by several processes (comm/comm.h): each holds a
// run of consecutive rows, and the result has the bytes of one process that holds all. Internal to
// the library.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "fungi/base/scratch_matrix.h"
#include "fungi/comm/comm.h"
#include "fungi/search/kmeans.h"
#include "fungi/search/knn.h"

namespace fungi {

// First row of a rank, and one past its last; boundaries are multiples of a block of sums.
std::pair<size_t, size_t> own_rows(size_t rows, size_t rank, size_t ranks);
inline std::pair<size_t, size_t> own_rows(size_t rows, const Comm& comm) {
  return own_rows(rows, comm.rank(), comm.size());
}

// Collective. `own` are rows first, first + 1, ... of `total`; every rank has all queries and gets
// the whole answer.
Neighbours knn_on_ranks(View<const float> own, size_t first, size_t total,
                        View<const float> queries, size_t k, Pool& pool, const KnnOptions& options,
                        Comm& comm);

// Collective. load() gives rows by number; it is asked for a share of those from which centres are
// found, then for own_rows(). No initial centres may be given. Every rank gets all assignments.
using LoadRows = std::function<ScratchMatrix(std::span<const size_t> rows)>;
KMeans kmeans_on_ranks(size_t total, size_t width, const LoadRows& load,
                       const KMeansOptions& options, Pool& pool, Comm& comm);

}  // namespace fungi
