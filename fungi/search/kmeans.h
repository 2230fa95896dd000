// SPDX-License-Identifier: Apache-2.0
// k-means by Lloyd's iteration (SPEC 5.4): defaults as in faiss, every step deterministic. Rows go
// to the exactly nearest centre, ties to the smaller number (nearest_centre.h); sums run over rows
// in order in f64, whatever the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

enum class EmptyClusters {
  split,  // takes half of the largest cluster
  keep,   // stays where its centre is
};

struct KMeansOptions {
  size_t clusters = 8;
  size_t iterations = 25;  // at most; stops early when no row changes its cluster
  size_t restarts = 1;     // the run of smallest inertia wins
  uint64_t seed = 1234;
  size_t rows_per_cluster = 256;      // a larger set is sampled down to this for training; 0: never
  View<const float> initial = {};     // [clusters, width]; empty: distinct rows drawn at random
  Metric metric = Metric::euclidean;  // says which centre is nearest; centres are plain means
  EmptyClusters empty = EmptyClusters::split;
  // Calls progress(done, total) from the caller's thread, first with 0, then after each iteration;
  // a run that ends early has done all of its own. What it throws ends the work.
  std::function<void(size_t, size_t)> progress = {};
};

struct KMeans {
  Matrix<float> centres;             // [clusters, width]
  std::vector<uint32_t> assignment;  // of every row, to its nearest centre
  double inertia = 0;       // Σ squared distance of every row to its centre, or −Σ similarity
  size_t iterations = 0;    // of the winning run
  size_t trained_rows = 0;  // how many rows the centres were found from
};

// Errors: no clusters, fewer rows than clusters, initial centres of another shape, NaN or infinity
// (naming the row).
KMeans kmeans(View<const float> rows, const KMeansOptions& options, Pool& pool);

// The nearest centre of every row; of two that are equally near the smaller number. Errors: no
// centres, or of another width.
std::vector<uint32_t> assign_to_centres(View<const float> rows, View<const float> centres,
                                        Pool& pool, Metric metric = Metric::euclidean);

}  // namespace fungi
