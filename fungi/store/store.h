// SPDX-License-Identifier: Apache-2.0
// Reads a feature store (docs/formats.md): rows by number, blocks by name, from mapped files, so
// that a store may be larger than memory. Const after opening and safe to share between threads.
// StoreWriter (writer.h) makes them.
//
// Ids and labels are those of the moment of opening. Where the store is rewritten later (reordered,
// pruned, overwritten), reading a shard that is another one now is an Error: open it again. Shards
// that stay, as all full ones do when a store grows at its end, remain readable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/store/manifest.h"

namespace fungi {

// The rows of one sample, in a line as Store::gather() and Store::map() give it.
inline View<const float> rows_of(const StoreBlock& block, const float* line) {
  return {line, block.rows, block.width};
}

// Features in memory with everything that belongs to their rows.
struct FeatureSet {
  std::vector<std::string> ids;
  std::vector<int64_t> labels;  // index into classes; -1: none
  std::vector<std::string> classes;
  std::vector<StoreBlock> blocks;  // in the order of the columns
  Matrix<float> features;          // [n, sum of the widths]
};

class Store {
 public:
  // An unfinished store is an Error unless allow_partial: its rows would be taken for the whole
  // data set.
  static Store open(const std::filesystem::path& folder, bool allow_partial = false);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // References into the store: those of a temporary would dangle.
  const std::filesystem::path& folder() const&;
  const StoreManifest& manifest() const&;
  const std::vector<std::string>& ids() const&;   // row i is ids()[i]
  const std::vector<int64_t>& labels() const&;    // -1: none
  const std::vector<std::string>& keys() const&;  // what says that content changed; may be empty
  const std::vector<std::string>& classes() const&;
  void folder() const&& = delete;
  void manifest() const&& = delete;
  void ids() const&& = delete;
  void labels() const&& = delete;
  void keys() const&& = delete;
  void classes() const&& = delete;

  size_t rows() const;
  std::string class_name(size_t row) const;  // empty when the row has no label

  // "embedding+kl+dino" → blocks in that order; "" or "all" → every block that is a feature
  // (manifest.h). Error naming the choices.
  std::vector<StoreBlock> select(std::string_view features) const;

  // Rows first .. first + out.rows of the selected blocks side by side; an Error for blocks with
  // several rows per sample, which gather() and map() give. normalise: each block of
  // each row is divided by its Euclidean norm (in f64; zero stays zero), as SPEC 1.6 has it; the
  // concatenation is not normalised again.
  void read(const std::vector<StoreBlock>& blocks, bool normalise, size_t first,
            View<float> out) const;
  // The same for rows by number, out.rows of them; cheapest in ascending order.
  void read(const std::vector<StoreBlock>& blocks, bool normalise, std::span<const size_t> rows,
            View<float> out) const;

  // Rows by number, of one block by its name, as stored: a line of StoreBlock::size() floats for
  // each, of which rows_of() gives the rows. Cheapest in ascending order.
  Matrix<float> gather(std::string_view block, std::span<const size_t> rows) const;

  FeatureSet load(std::string_view features = "all", bool normalise = true) const;

  // One shard of one block: mapped, without a copy (float16: converted), a line for each of its
  // samples. The data lives as long as `owner`.
  struct Mapped {
    View<const float> rows;
    size_t first_row = 0;
    std::shared_ptr<const void> owner;
  };
  size_t shards() const;
  size_t first_row(size_t shard) const;  // of shards(): the number of all rows
  Mapped map(std::string_view block, size_t shard) const;

  Matrix<float> state(std::string_view name) const;  // checked against the manifest

  std::vector<FailedSample> failed()
      const;  // samples that are no rows, in the order of the data set

 private:
  Store();
  struct State;
  std::unique_ptr<State> state_;
};

// The labels of `other` as indices into `classes`, matched by class name (by number where a store
// has no names). A class that is not among them is an Error, or -1 when allow_unknown. Rows without
// a label give -1. A label that is no class of `other` is an Error.
std::vector<int64_t> align_labels(const std::vector<std::string>& classes, const FeatureSet& other,
                                  bool allow_unknown = false);
std::vector<int64_t> align_labels(const std::vector<std::string>& classes, const Store& other,
                                  bool allow_unknown = false);

// Error naming the first row without a label, and what to do; for whoever counts classes.
void require_labels(const Store& store);

// What `fungi info STORE` says. Works on unfinished stores, too.
struct StoreInfo {
  StoreManifest manifest;
  std::string folder;
  uintmax_t bytes = 0;         // of all files
  size_t pending_updates = 0;  // folders of an unfinished rewrite or shard
  size_t waiting_rows = 0;     // in them alone
  struct Row {
    std::string id, class_name;
    int64_t label = -1;
  };
  std::vector<Row> first_rows;
  std::vector<FailedSample> first_failed;
};
StoreInfo describe_store(const std::filesystem::path& folder, size_t first_rows = 5);
std::string to_text(const StoreInfo& info);
std::string to_json(const StoreInfo& info);

// True when the folder holds a manifest.json of a feature store.
bool is_store(const std::filesystem::path& folder);

}  // namespace fungi
