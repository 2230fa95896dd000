// SPDX-License-Identifier: Apache-2.0
// A store or an index as it lay on the disk when it was opened: all answers about one of these fit
// together, whatever happens to the folder. Safe to share between threads.
// Internal to this room.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fungi/feature/reopen.h"
#include "fungi/input/dataset.h"
#include "fungi/retrieve/database.h"
#include "fungi/service/service.h"

namespace fungi::service {

// The extractor of some rows, opened when it is first asked for. A store that has grown keeps it.
class SharedExtractor {
 public:
  SharedExtractor(std::shared_ptr<const Database> rows, std::filesystem::path model);
  // Error where the model is gone or another one; the next call looks again.
  Reopened& get(Pool& pool);
  bool ready() const { return ready_; }
  // Whether it is the extractor of such a store, whose model is said to be there.
  bool makes_rows_of(const StoreManifest& manifest, const std::filesystem::path& model) const;

 private:
  const StoreManifest manifest_;
  const std::filesystem::path model_;
  std::mutex mutex_;
  std::shared_ptr<const Database> rows_;  // until it is opened
  std::optional<Reopened> reopened_;
  std::atomic<bool> ready_ = false;
};

class Opened {
 public:
  // others: the same folder as it was, or stores beside it: one extractor serves all that were made
  // alike, so that weights are in memory once and samples of all are computed together.
  Opened(const ServedStore& source, size_t memory, uint64_t version,
         const std::vector<std::shared_ptr<const Opened>>& others, Pool& pool);

  const std::string& name() const { return source_.name; }
  uint64_t version() const { return version_; }
  bool is_index() const { return store_ == nullptr; }
  const StoreManifest& manifest() const { return all_->reduction().origin(); }
  const Store* store() const { return store_.get(); }  // null: an index
  // Of the features that are meant where nothing is said.
  const Database& rows() const { return *all_; }
  // Of others, "embedding+kl"; the same for all who ask. Error where there are none of that name.
  std::shared_ptr<const Database> database(const std::string& features, Pool& pool) const;

  // Nothing where another program made the rows.
  const std::optional<SampleKind>& samples() const { return kind_; }
  const std::vector<std::vector<uint32_t>>& rows_by_class() const { return by_class_; }
  size_t without_label() const { return without_label_; }
  std::string class_name(int64_t label) const;
  std::optional<size_t> find_class(const std::string& name) const;

  // Shared by the queries of all who ask at once.
  SharedExtractor& extractor() const { return *extractor_; }

 private:
  ServedStore source_;
  size_t memory_;
  uint64_t version_;
  std::shared_ptr<const Store> store_;
  std::shared_ptr<const Database> all_;
  std::optional<SampleKind> kind_;
  std::shared_ptr<SharedExtractor> extractor_;
  std::vector<std::vector<uint32_t>> by_class_;
  size_t without_label_ = 0;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const Database>> others_;  // used last comes first
};

}  // namespace fungi::service
