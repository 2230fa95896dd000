// SPDX-License-Identifier: Apache-2.0
// More rows of a store, later and one at a time: backbone and extractor rebuilt from what the store
// says about itself, so that a query is treated as the rows were, to the last bit (on the same
// instruction set).
//
//   Reopened reopened(extraction_record(store), pool);
//   Matrix<float> queries = reopened.rows({"query.jpg"}, store.select("embedding+kl"),
//   knows_ids_of(store));
//
// For pictures in memory: rows(*memory_dataset(...), ...), as examples/05_service.cpp has it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/feature/extractor.h"
#include "fungi/store/store.h"

namespace fungi {

// All that a store knows about how its rows were made.
struct ExtractionRecord {
  StoreManifest manifest;
  std::vector<NamedMatrix> state;
  std::string place;  // the folder it comes from, for messages
};
ExtractionRecord extraction_record(const Store& store);
// The state arrays that a manifest lists, read from folder/state and checked.
ExtractionRecord extraction_record(StoreManifest manifest, const std::filesystem::path& folder);

// Objectives of your own, which no manifest can describe; told apart by their names.
using OwnObjectives = std::span<const std::unique_ptr<Objective>>;

// The options that made the store; `own` objectives become ExtractorOptions::own. Error where the
// manifest does not say, or names an objective that is neither the library's nor among `own`.
BackboneOptions backbone_options(const ExtractionRecord& record, OwnObjectives own = {});
ExtractorOptions extractor_options(const ExtractionRecord& record,
                                   std::vector<std::unique_ptr<Objective>> own = {});

// Error unless the file is there and is the model that the rows were made with (by its sha256).
void require_same_model(const ExtractionRecord& record, const std::filesystem::path& model);

struct ReopenOptions {
  std::filesystem::path model;       // empty: where it was when the store was made
  std::optional<Backbone> backbone;  // its weights, already open (of another Reopened): then no
                                     // file is looked for
  Matrix<float> projection_matrix;   // for a store of ProjectionKind::matrix, which keeps the
                                     // matrix's sha256 alone
  // Those of ExtractorOptions::own, in that order; their state comes from the store.
  std::vector<std::unique_ptr<Objective>> objectives;
  std::shared_ptr<const Modality> modality;  // that of ExtractorOptions
};

// Whether an id is one of the store's.
using KnowsId = std::function<bool(std::string_view id)>;
KnowsId knows_ids_of(const Store& store);

// The id under which a picture's random crops are drawn: the longest end of its path that is an id
// of the store, so that a picture of the store gets the very crops it had; its name alone where
// there is none, however its folder is spelt.
std::string query_id(const std::filesystem::path& file, const KnowsId& known);

// Safe to share between threads: calls of rows() wait for each other, as those of
// Extractor::extract() do.
class Reopened {
 public:
  // Errors: the model is gone or is another one (by its sha256), state is missing, settings that
  // this program reads differently.
  Reopened(const ExtractionRecord& record, Pool& pool, ReopenOptions options = {});
  Reopened(Reopened&&) noexcept;
  ~Reopened();

  const Backbone& backbone() const;
  Extractor& extractor();  // ready

  // Features of files of pictures or sounds, as Store::read gives those of stored rows: blocks side by side, each
  // of length 1. A picture that cannot be used is an Error naming it; with `failures` it is put
  // there, and its row is zero.
  Matrix<float> rows(const std::vector<std::filesystem::path>& files,
                     const std::vector<StoreBlock>& blocks, const KnowsId& known,
                     std::vector<StoreFailure>* failures = nullptr);
  // The same of texts; the words that objectives leave out are drawn by the text itself.
  Matrix<float> rows(const std::vector<Text>& texts, const std::vector<StoreBlock>& blocks,
                     std::vector<StoreFailure>* failures = nullptr);
  // The same for all samples of a data set. Random crops are drawn by their ids: one that is an id
  // of the store gets the crops that its row had.
  Matrix<float> rows(const Dataset& samples, const std::vector<StoreBlock>& blocks,
                     std::vector<StoreFailure>* failures = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
