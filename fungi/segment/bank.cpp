// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/bank.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/error.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/search/code_index.h"
#include "fungi/search/index.h"
#include "fungi/search/knn.h"
#include "fungi/segment/bank_files.h"

namespace fungi {
namespace {

using namespace segment;

constexpr const char* kIndexFolder = "index";
// A bank larger than this gives the rows that a search has read back to the system: they would fill
// the memory, and come again when they are wanted.
constexpr size_t kKeptBytes = size_t(1) << 30;
constexpr size_t kTogether = 512;  // queries between two such moments

}  // namespace

const char* to_string(BankSearch search) {
  switch (search) {
    case BankSearch::exact:
      return "exact";
    case BankSearch::ivf:
      return "ivf";
    default:
      return "auto";
  }
}

BankSearch parse_bank_search(std::string_view name) {
  for (const BankSearch search : {BankSearch::automatic, BankSearch::exact, BankSearch::ivf})
    if (name == to_string(search)) return search;
  fail(fmt::format("unknown way to search a bank '{}'", name), "search", "use auto, exact or ivf");
}

struct Bank::State {
  State(std::filesystem::path at, BankState found)
      : folder(std::move(at)),
        description(std::move(found)),
        features(NpyFile::open(folder / kFeatures)),
        ends(NpyFile::open(folder / kLabelEnds)),
        classes(NpyFile::open(folder / kLabelClasses)),
        shares(NpyFile::open(folder / kLabelShares)) {}

  void check() const;
  void let_go() const {
    if (features.rows() * features.cols() * sizeof(float) > kKeptBytes) features.release();
  }

  std::filesystem::path folder;
  BankState description;
  NpyFile features, ends, classes, shares;
  BankSearchOptions options;
  std::unique_ptr<CodeIndex> index;
};

void Bank::State::check() const {
  const auto require = [&](bool condition, const char* file, const char* expected) {
    if (!condition)
      fail(fmt::format("expected {}", expected), (folder / file).string(),
           "the bank is damaged: remove its folder and build it again");
  };
  const size_t rows = description.rows, entries = description.entries;
  require(features.rows() == rows && features.view<float>().cols == description.spec.width,
          kFeatures, "the rows and the width that bank.json says");
  require(ends.rows() == rows && ends.view<int64_t>().cols == 1, kLabelEnds, "one end per row");
  require(classes.rows() == entries && classes.view<uint8_t>().cols == 1, kLabelClasses,
          "the entries that bank.json says");
  require(shares.rows() == entries && shares.view<float>().cols == 1, kLabelShares,
          "the entries that bank.json says");
  const int64_t* end = ends.view<int64_t>().data;
  bool ascending = end[rows - 1] == int64_t(entries);
  for (size_t i = 0; ascending && i < rows; ++i) ascending = end[i] >= (i ? end[i - 1] : 0);
  require(ascending, kLabelEnds, "ascending ends, the last of them the number of entries");
  const uint8_t* number = classes.view<uint8_t>().data;
  const float* share = shares.view<float>().data;
  bool known = true, finite = true;
  for (size_t i = 0; i < entries; ++i) {
    known = known && number[i] < description.spec.classes;
    finite = finite && share[i] > 0 && share[i] <= 1;
  }
  require(known, kLabelClasses, "classes of which there are as many as bank.json says");
  require(finite, kLabelShares, "shares above 0 and at most 1");
}

bool Bank::is_there(const std::filesystem::path& folder, const BankSpec& spec) {
  const std::filesystem::path file = folder / kBankFile;
  if (!is_file(file)) return false;
  require_same(spec, read_state(file).spec, file);
  return true;
}

Bank Bank::open(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kBankFile;
  if (!is_file(file))
    fail(is_file(folder / kBuildingFile) ? "the bank is not complete" : "there is no bank",
         folder.string(), "build it, or go on where its building was stopped, with `segment`");
  BankState found = read_state(file);
  if (found.rows == 0) fail("the bank is empty", folder.string(), "build it again");
  auto state = std::make_unique<State>(folder, std::move(found));
  state->check();
  return Bank(std::move(state));
}

Bank::Bank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bank::Bank(Bank&&) noexcept = default;
Bank& Bank::operator=(Bank&&) noexcept = default;
Bank::~Bank() = default;

const BankSpec& Bank::spec() const { return state_->description.spec; }
View<const float> Bank::features() const { return state_->features.view<float>(); }
const std::vector<BankFailure>& Bank::failed() const { return state_->description.failed; }
bool Bank::is_exact() const { return !state_->index; }

void Bank::add_label(size_t row, double weight, std::span<double> shares) const {
  const State& s = *state_;
  FUNGI_ASSERT(row < rows() && shares.size() == spec().classes);
  const int64_t* end = s.ends.view<int64_t>().data;
  const uint8_t* number = s.classes.view<uint8_t>().data;
  const float* share = s.shares.view<float>().data;
  for (int64_t i = row ? end[row - 1] : 0; i < end[row]; ++i)
    shares[number[i]] += weight * double(share[i]);
}

std::vector<double> Bank::class_shares() const {
  std::vector<double> sum(spec().classes, 0);
  for (size_t row = 0; row < rows(); ++row) add_label(row, 1, sum);
  return sum;
}

void Bank::prepare(const BankSearchOptions& options, Pool& pool,
                   const std::function<void(size_t, size_t)>& progress) {
  State& s = *state_;
  s.options = options;
  s.index.reset();
  const bool quick = rows() <= kQuickRows;
  if (options.search == BankSearch::exact || (options.search == BankSearch::automatic && quick))
    return;
  const std::filesystem::path folder = s.folder / kIndexFolder;
  if (!CodeIndex::is_there(folder, options.lists))
    CodeIndex::build(features(), folder, {.lists = options.lists, .progress = progress}, pool);
  s.let_go();
  s.features.expect_random(true);
  s.index = std::make_unique<CodeIndex>(CodeIndex::open(folder, features()));
}

Neighbours Bank::search(View<const float> queries, size_t k, Pool& pool) const {
  const State& s = *state_;
  if (k > rows())
    fail(fmt::format("asked for {} neighbours among the {} rows of the bank", k, rows()),
         s.folder.string(), "ask for fewer with `k`, or remember more pictures");
  const CodeSearchOptions codes{.probes = s.options.probes, .rerank = s.options.rerank};
  if (!s.index) {
    Neighbours found = knn(features(), queries, k, pool, {.metric = Metric::inner_product});
    s.let_go();
    return found;
  }
  Neighbours found{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  for (size_t first = 0; first < queries.rows; first += kTogether) {
    const size_t count = std::min(kTogether, queries.rows - first);
    const Neighbours some = s.index->search(queries.slice(first, count), k, pool, codes);
    std::copy_n(some.index.data(), count * k, found.index.row(first));
    std::copy_n(some.value.data(), count * k, found.value.row(first));
    s.let_go();
  }
  return found;
}

double Bank::recall(View<const float> queries, size_t k, Pool& pool) const {
  if (is_exact()) return 1;
  state_->features.expect_random(false);
  const Neighbours exact = knn(features(), queries, k, pool, {.metric = Metric::inner_product});
  state_->features.expect_random(true);
  state_->let_go();
  return fungi::recall(search(queries, k, pool), exact);
}

}  // namespace fungi
