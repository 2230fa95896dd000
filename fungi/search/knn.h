// SPDX-License-Identifier: Apache-2.0
// Exact k nearest neighbours, in blocks over both matrices, so that memory-mapped inputs may be
// larger than memory.
//
// What "exact" means. The key of a pair is ‖x−y‖² (or minus the similarity) of the given f32
// numbers, computed in f64 in one fixed order (search::ExactKey). The answer is the k smallest
// keys, equal keys by smaller row number. It is a function of the two rows' numbers only: no block
// size, thread count, scan or instruction set can change a bit of it.
//
// Why the scan cannot lose one. For each pair the scan computes a number L ≤ key (scan_kernel.h:
// Cauchy-Schwarz on the rounding of both rows, plus the error of its sums). Let T be the largest of
// k keys already computed exactly: the k-th smallest key of all is ≤ T. A row that is dropped has L
// > T, hence key > T, hence is not among the k smallest. A row that is not dropped gets its exact
// key. Coarser products make more work, never another answer.
#pragma once

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

// With what the rows that cannot be among the nearest are excluded.
enum class ScanKind {
  automatic,  // what is fastest here: bf16 on tiles, bytes with AVX2, f32 elsewhere
  f32,        // the f32 GEMM of the kernel table
  bf16,       // the bf16 GEMM of the kernel table
  bytes,      // 8-bit codes, exact integer products
};

struct KnnOptions {
  Metric metric = Metric::euclidean;
  ScanKind scan = ScanKind::automatic;
  bool skip_same_row =
      false;  // queries are rows of the database: row i is never a neighbour of query i
  size_t query_block = 16384;    // queries whose k best are kept at once
  size_t database_block = 8192;  // rows prepared at once
  // The lengths of the database's rows, [rows, 1], where they are known; 0 is none. Few queries
  // then go over each row once. (For many, rows are prepared, which needs their every number
  // anyway.)
  View<const double> norms = {};
};

// What the search did, for benchmarks.
struct KnnWork {
  uint64_t pairs = 0;  // looked at by the scan
  uint64_t exact = 0;  // of these, not excluded by it
};

// The k nearest rows of the database for every query. Errors: widths that differ, k = 0 or more
// than the rows there are, a block of 0 rows, NaN or infinity (naming the row). No queries give an
// empty answer.
Neighbours knn(View<const float> database, View<const float> queries, size_t k, Pool& pool,
               const KnnOptions& options = {}, KnnWork* work = nullptr);

}  // namespace fungi
