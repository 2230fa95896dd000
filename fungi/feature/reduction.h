// SPDX-License-Identifier: Apache-2.0
// How rows of stores become the vectors that are searched or handed to other programs: some blocks,
// each of length 1, side by side (SPEC 1.6), then perhaps a PCA fitted on one store (SPEC 1.7).
// Kept as a small folder, so that later rows and queries are treated in the same way. Const after
// fitting, safe to share.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/pca/pca.h"
#include "fungi/store/store.h"

namespace fungi {

class Comm;

// What Reduction::save() may leave in a folder, also when it is killed.
inline constexpr std::string_view kReductionFiles[] = {"features.json", "store.json", "pca.npz",
                                                       "pca.npz.new"};

// True when the folder holds a features.json of a Reduction.
bool is_reduction(const std::filesystem::path& folder);

class Reduction {
 public:
  // features: "embedding+kl"; empty: every block but kept factors. dim: columns that the PCA
  // leaves; 0: no PCA. The store is read in parts and may be larger than memory. Error unless dim
  // is below both the rows and the columns.
  // ranks: every process fits, and they share the work.
  static Reduction fit(const Store& store, std::string_view features, size_t dim, Pool& pool,
                       Comm* ranks = nullptr);

  static Reduction open(const std::filesystem::path& folder);
  void save(const std::filesystem::path& folder)
      const;  // features.json, store.json and, with a PCA, pca.npz

  const StoreManifest& origin() const { return origin_; }  // of the store it was fitted on
  const std::vector<StoreBlock>& blocks() const { return blocks_; }
  std::string features() const;  // "embedding+kl"
  const std::optional<Pca>& pca() const { return pca_; }
  size_t input_width() const;
  size_t output_width() const { return pca_ ? pca_->output_width() : input_width(); }

  // Error naming the first setting in which a store was extracted differently.
  void require_fits(const Store& store) const;

  // [n, input_width] → [n, output_width]. Each row depends on itself alone. Error on another width.
  Matrix<float> apply(Matrix<float> joined, Pool& pool) const;

  // All rows of a store in parts of some megabytes: visit(first row, vectors), in order.
  void each_part(const Store& store, Pool& pool,
                 const std::function<void(size_t first, View<const float> vectors)>& visit) const;

 private:
  StoreManifest origin_;
  std::vector<StoreBlock> blocks_;
  std::optional<Pca> pca_;
};

// The vectors of a whole store as one float32 .npy [rows, columns], written part by part.
void write_vectors(const Reduction& reduction, const Store& store, const std::filesystem::path& npy,
                   Pool& pool);

}  // namespace fungi
