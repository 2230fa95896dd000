// SPDX-License-Identifier: Apache-2.0
// An index of a store, with all that a search needs besides the rows: which blocks they were made
// of, the PCA, ids and labels, and the record from which the extractor is rebuilt for query images.
// The folder (docs/formats.md) stands alone: the store may grow, move or go. Const, safe to share.
#pragma once

#include <optional>

#include "fungi/feature/reduction.h"
#include "fungi/feature/reopen.h"
#include "fungi/search/index.h"

namespace fungi {

struct FeatureIndexOptions {
  std::string features;  // "embedding+kl"; empty: every block but kept factors
  size_t pca = 0;        // columns to shrink to; 0: none
  IndexOptions index;
};

class FeatureIndex {
 public:
  static FeatureIndex build(const Store& store, const FeatureIndexOptions& options, Pool& pool);
  static FeatureIndex open(
      const std::filesystem::path& folder);  // maps vectors, graph, ids and labels
  // Replaces an index that is there; a folder with anything else in it is an Error, of which
  // require_can_save() tells before an hour of building.
  void save(const std::filesystem::path& folder) const;
  static void require_can_save(const std::filesystem::path& folder);

  FeatureIndex(FeatureIndex&&) noexcept;
  ~FeatureIndex();

  const Index& index() const;
  const Reduction& reduction() const;
  const ExtractionRecord& record() const;
  std::string id(size_t row) const;          // Error where there is no such row, as the next two
  int64_t label(size_t row) const;           // -1: none
  std::string class_name(size_t row) const;  // empty when the row has no label
  std::optional<size_t> find(std::string_view id) const;

  // Share of the k true neighbours that the index finds, over `sample` of its rows at equal
  // distances; a row is never counted as its own neighbour. 1 for the exact kind, without looking.
  // k and sample are lowered to what the rows allow. Of an index that was built, not opened.
  double recall(size_t k, size_t sample, Pool& pool, const SearchOptions& options = {}) const;

 private:
  FeatureIndex();
  struct State;
  std::unique_ptr<State> state_;
};

// True when the folder holds an index.json.
bool is_index(const std::filesystem::path& folder);

// The k nearest rows of a store itself, exactly; it is read in parts and may be larger than memory.
// Equal values by smaller row.
Neighbours search_store(const Store& store, const Reduction& reduction, View<const float> queries,
                        size_t k, Metric metric, Pool& pool);

}  // namespace fungi
