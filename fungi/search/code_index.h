// SPDX-License-Identifier: Apache-2.0
// Rows in lists around k-means centres, as 8-bit codes: a search scans the lists nearest to a
// query, keeps the rows whose approximate inner product is largest, and compares those exactly,
// with the rows themselves, which lie elsewhere and may be mapped. The codes of a million rows of
// 768 numbers take 0.8 GB; rows are touched only to compare them.
//
// The folder is the same on every machine, and so is every answer. Internal to the library.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

struct CodeIndexOptions {
  size_t lists = 512;  // fewer where there are fewer rows
  uint64_t seed = 1234;
  // Of codes, while they are built: the rows are read once more for each. Changes no byte.
  size_t held_bytes = size_t(2) << 30;
  // Calls progress(done, total) from the caller's thread now and then; what it throws ends the
  // work.
  std::function<void(size_t, size_t)> progress = {};
};

struct CodeSearchOptions {
  size_t probes = 32;   // lists scanned per query
  size_t rerank = 120;  // rows compared exactly per query, at least the neighbours wanted
};

// Const, safe to share between threads.
class CodeIndex {
 public:
  // Writes the index of the rows into the folder, which a killed run leaves without its
  // description. Error on NaN or infinity, naming the row.
  static void build(View<const float> rows, const std::filesystem::path& folder,
                    const CodeIndexOptions& options, Pool& pool);
  static bool is_there(const std::filesystem::path& folder, size_t lists);
  // Borrows the rows it was built from. Error where it is of other sizes.
  static CodeIndex open(const std::filesystem::path& folder, View<const float> rows);
  CodeIndex(CodeIndex&&) noexcept;
  CodeIndex& operator=(CodeIndex&&) noexcept;
  ~CodeIndex();

  size_t lists() const;
  // The k rows of the largest inner product among those met, with exact values, by
  // search::ExactKey's order. Where the lists probed have fewer than k rows, all are.
  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const CodeSearchOptions& options = {}) const;

 private:
  struct State;
  explicit CodeIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fungi
