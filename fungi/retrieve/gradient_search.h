// SPDX-License-Identifier: Apache-2.0
// Exact neighbours by whole gradients, from the factors that `extract --keep-factors` stored. What
// is compared is the embedding of length 1 beside the gradient of every objective, flattened and
// divided by its norm: the limit of ever wider projections. Those rows have hundreds of thousands
// of columns and never exist; their products come from factors (gradient_products.h). Keys follow
// metric.h, so that neighbours, votes and ranks mean the same as for plain rows.
//
// The key of a pair depends on the two rows alone, not on blocks or threads; a row has distance 0
// to its own copy. Memory is that of the embeddings and of two blocks of factors. Const after
// construction and safe to share between threads.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"
#include "fungi/store/store.h"

namespace fungi {

struct GradientSearchOptions {
  Metric metric = Metric::euclidean;
  std::vector<size_t> database_rows = {};  // those searched, in this order; empty: all
  std::vector<size_t> query_rows = {};     // those that ask, in this order; empty: all
  size_t block_bytes = size_t{128} << 20;  // of factors, per side
};

class GradientSearch {
 public:
  // features: "embedding+kl+dino", of blocks that both stores hold; all but the embedding are
  // compared by their factors. Both stores must live as long. Errors: no factors (KeptFactors),
  // layers that differ, NaN or infinity (naming side and row).
  GradientSearch(const Store& database, const Store& queries, std::string_view features, Pool& pool,
                 GradientSearchOptions options = {});
  // Of temporaries: they would be gone.
  GradientSearch(const Store&&, const Store&, std::string_view, Pool&,
                 GradientSearchOptions = {}) = delete;
  GradientSearch(const Store&, const Store&&, std::string_view, Pool&,
                 GradientSearchOptions = {}) = delete;
  ~GradientSearch();

  size_t rows() const;  // of the database
  size_t queries() const;
  size_t columns() const;  // of the rows that are never formed

  // The k nearest rows of the database for every query; equal keys by smaller row. Row numbers
  // count the searched rows.
  Neighbours knn(size_t k, Pool& pool) const;

  // Keys of queries first .. first + keys.rows to every row: smaller is nearer (search::Best).
  void keys(size_t first, View<double> keys, Pool& pool) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
