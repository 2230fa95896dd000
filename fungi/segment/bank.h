// SPDX-License-Identifier: Apache-2.0
// The memory of a segmentation: a row of unit features and a soft label for each remembered patch,
// on disk in a folder that is mapped, never loaded (docs/formats.md). It is written in one pass and
// goes on after a kill; the bytes are those of a run that nothing stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

struct BankSpec {
  size_t width = 0, classes = 0;
  // What the rows depend on, a JSON object: who goes on, and who opens the bank, wants the same.
  std::string settings = "{}";
};

// A picture that could not be used.
struct BankFailure {
  std::string id, reason, hint;
};

class BankWriter {
 public:
  // Goes on where an earlier run of the same spec stopped. Errors: a bank of another spec, naming
  // the first difference; another program writing it.
  BankWriter(const std::filesystem::path& folder, const BankSpec& spec);
  ~BankWriter();
  BankWriter(const BankWriter&) = delete;
  BankWriter& operator=(const BankWriter&) = delete;

  size_t steps() const;   // that earlier runs, or this one, have added
  size_t rows() const;
  const std::vector<BankFailure>& failed() const;

  // The next step: rows of one picture with their labels, [rows, classes], or why there are none.
  void add(View<const float> rows, View<const float> labels);
  void add_failed(BankFailure failure);
  void save();    // what was added survives a kill
  void finish();  // last. Error where no row was added.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How rows are searched. `exact` compares with every one. `ivf` scans 8-bit codes of the lists
// nearest to a query and compares the best of them exactly.
enum class BankSearch { automatic, exact, ivf };
const char* to_string(BankSearch search);
BankSearch parse_bank_search(std::string_view name);  // throws Error naming the choices

struct BankSearchOptions {
  BankSearch search = BankSearch::automatic;  // exact up to kQuickRows rows
  size_t lists = 512, probes = 32, rerank = 120;
  bool operator==(const BankSearchOptions&) const = default;
};
inline constexpr size_t kQuickRows = 131'072;

class CodeIndex;

// Const once it is open (and indexed), safe to share between threads.
class Bank {
 public:
  // Whether a folder has one that is complete. Error where it is of another spec, naming the first
  // difference.
  static bool is_there(const std::filesystem::path& folder, const BankSpec& spec);
  // Error where it is not complete.
  static Bank open(const std::filesystem::path& folder);
  Bank(Bank&&) noexcept;
  Bank& operator=(Bank&&) noexcept;
  ~Bank();

  const BankSpec& spec() const;
  size_t rows() const { return features().rows; }
  View<const float> features() const;  // [rows, width], mapped
  const std::vector<BankFailure>& failed() const;
  // shares[c] += weight · share of class c in the label of the row.
  void add_label(size_t row, double weight, std::span<double> shares) const;
  // Sum of the labels of all rows: what there is of each class, in patches.
  std::vector<double> class_shares() const;

  // Gets the bank ready for that search: an index that the search needs and the folder does not
  // have is built and stays there. Calls progress(done, total) now and then; what it throws ends
  // the work. Error where k neighbours cannot be had.
  void prepare(const BankSearchOptions& options, Pool& pool,
               const std::function<void(size_t, size_t)>& progress = {});
  bool is_exact() const;  // after prepare()
  // The k rows of the largest inner product; the values are exact whatever the search.
  Neighbours search(View<const float> queries, size_t k, Pool& pool) const;
  // Share of the exact neighbours that search() finds, for these queries.
  double recall(View<const float> queries, size_t k, Pool& pool) const;

 private:
  struct State;
  explicit Bank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fungi
