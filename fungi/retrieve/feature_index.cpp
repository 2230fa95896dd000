// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/feature_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/checkpoint/atomic_file.h"
#include "fungi/search/index_body.h"
#include "fungi/search/knn.h"
#include "fungi/store/files.h"
#include "fungi/store/shards.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using search::Numbers;

constexpr std::string_view kUnfinished = "unfinished";  // there while a folder is being written
constexpr std::string_view kNew = "new";  // the folder inside it in which that happens

// Everything a folder may hold, of every kind of index.
constexpr std::string_view kFiles[] = {
    kUnfinished, "index.json",  "vectors.npy", "links.npy",   "upper_start.npy",
    "upper.npy", "entry.npy",   "centres.npy", "offsets.npy", "numbers.npy",
    "ids.npy",   "id_ends.npy", "labels.npy"};

bool is_own_file(const fs::path& name) {
  return std::find(std::begin(kFiles), std::end(kFiles), name) != std::end(kFiles) ||
         std::find(std::begin(kReductionFiles), std::end(kReductionFiles), name) !=
             std::end(kReductionFiles);
}

// The name under which a file is known here; a killed write leaves it with an ending.
fs::path own_name(const fs::path& file) {
  return file.extension() == store::kTemporary ? file.stem() : file.filename();
}

// A file in a folder of an index that is none of an index's.
std::optional<fs::path> stranger_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path name = own_name(entry.path());
    if (name == store::kState && entry.is_directory()) {
      for (const auto& state : fs::directory_iterator(entry))
        if (own_name(state.path()).extension() != ".npy") return state.path();
    } else if (name == kNew && entry.is_directory()) {
      if (auto inside = stranger_in(entry)) return inside;
    } else if (!is_own_file(name)) {
      return entry.path();
    }
  }
  return std::nullopt;
}

// What is there is ours to replace only if it is an index, or what a killed build left of one, and
// nothing besides.
void require_free(const fs::path& folder) {
  if (!fs::exists(folder) || fs::is_empty(folder)) return;
  const bool ours = search::describes_index(folder / "index.json") ||
                    (fs::exists(folder / kUnfinished) && fs::is_empty(folder / kUnfinished));
  const std::optional<fs::path> other =
      ours ? stranger_in(folder) : fs::directory_iterator(folder)->path();
  if (other)
    fail(fmt::format("the folder holds other files than those of an index: {}",
                     fs::relative(*other, folder).string()),
         folder.string(), "choose another folder");
}

// Takes the folder for a new index; nobody else may while the answer lives.
store::Lock take_folder(const fs::path& folder) {
  fs::create_directories(folder);
  require_free(folder);
  return store::Lock(folder / kUnfinished);
}

// The new index takes the place of the old one, of which nothing stays. Without index.json, which
// goes first and comes last, the folder is no index.
void move_in_place(const fs::path& folder) {
  fs::remove(folder / "index.json");
  std::vector<fs::path> older;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != kNew && entry.path().filename() != kUnfinished)
      older.push_back(entry.path());
  for (const fs::path& path : older) fs::remove_all(path);
  for (const auto& entry : fs::directory_iterator(folder / kNew))
    if (entry.path().filename() != "index.json")
      fs::rename(entry.path(), folder / entry.path().filename());
  fs::rename(folder / kNew / "index.json", folder / "index.json");
  fs::remove(folder / kNew);
}

}  // namespace

struct FeatureIndex::State {
  Matrix<float>
      rows;  // when built here: the exact kind borrows them, and recall() compares with them
  std::optional<Index> index;
  Reduction reduction;
  ExtractionRecord record;
  std::optional<Numbers<uint8_t>> ids;  // one after the other
  std::optional<Numbers<int64_t>> id_ends, labels;

  void check_row(size_t row) const {
    if (row >= index->rows())
      fail(fmt::format("asked for row {} of {}", row, index->rows()), record.place);
  }
  std::string_view id(size_t row) const {
    const View<const int64_t> ends = id_ends->view();
    check_row(row);
    const int64_t begin = row ? ends(row - 1, 0) : 0, end = ends(row, 0);
    if (begin < 0 || end < begin || size_t(end) > ids->view().rows)
      fail("expected ascending ends of ids within ids.npy", record.place, "build the index again");
    return {reinterpret_cast<const char*>(ids->view().data) + begin, size_t(end - begin)};
  }
};

FeatureIndex::FeatureIndex() : state_(std::make_unique<State>()) {}
FeatureIndex::FeatureIndex(FeatureIndex&&) noexcept = default;
FeatureIndex::~FeatureIndex() = default;

const Index& FeatureIndex::index() const { return *state_->index; }
const Reduction& FeatureIndex::reduction() const { return state_->reduction; }
const ExtractionRecord& FeatureIndex::record() const { return state_->record; }
std::string FeatureIndex::id(size_t row) const { return std::string(state_->id(row)); }
int64_t FeatureIndex::label(size_t row) const {
  state_->check_row(row);
  return state_->labels->view()(row, 0);
}

std::string FeatureIndex::class_name(size_t row) const {
  const int64_t number = label(row);
  const std::vector<std::string>& classes = record().manifest.classes;
  if (number < 0) return "";
  return size_t(number) < classes.size() ? classes[size_t(number)] : std::to_string(number);
}

std::optional<size_t> FeatureIndex::find(std::string_view id) const {
  for (size_t row = 0; row < index().rows(); ++row)
    if (state_->id(row) == id) return row;
  return std::nullopt;
}

FeatureIndex FeatureIndex::build(const Store& store, const FeatureIndexOptions& options,
                                 Pool& pool) {
  if (store.rows() == 0)
    fail("expected rows to build an index of, found none", store.folder().string(),
         "extract some images first");
  FeatureIndex built;
  State& s = *built.state_;
  s.record = extraction_record(store);
  s.reduction = Reduction::fit(store, options.features, options.pca, pool);
  s.rows = Matrix<float>(store.rows(), s.reduction.output_width());
  s.reduction.each_part(store, pool, [&](size_t first, View<const float> part) {
    std::copy_n(part.data, part.rows * part.cols, s.rows.row(first));
  });
  s.index = Index::build(s.rows, options.index, pool);

  size_t bytes = 0;
  for (const std::string& id : store.ids()) bytes += id.size();
  Matrix<uint8_t> ids(bytes, 1);
  Matrix<int64_t> ends(store.rows(), 1), labels(store.rows(), 1);
  size_t end = 0;
  for (size_t i = 0; i < store.rows(); ++i) {
    std::copy(store.ids()[i].begin(), store.ids()[i].end(), ids.data() + end);
    ends(i, 0) = int64_t(end += store.ids()[i].size());
    labels(i, 0) = store.labels()[i];
  }
  s.ids.emplace(std::move(ids)), s.id_ends.emplace(std::move(ends)),
      s.labels.emplace(std::move(labels));
  return built;
}

void FeatureIndex::require_can_save(const fs::path& folder) {
  store::guarded([&] { require_free(folder); });
}

void FeatureIndex::save(const fs::path& folder) const {
  const State& s = *state_;
  const bool was_there = store::guarded([&] { return fs::exists(folder); });
  const store::Lock lock = store::guarded([&] { return take_folder(folder); });
  const fs::path fresh = folder / kNew;
  try {
    store::guarded([&] {
      fs::remove_all(fresh);
      fs::create_directories(fresh / store::kState);
    });
    s.reduction.save(fresh);
    for (const NamedMatrix& m : s.record.state)
      write_file_atomically(fresh / store::state_file(m.name),
                            store::block_bytes(m.values, StoreType::float32));
    write_npy(fresh / "ids.npy", npy_array(s.ids->view().data, {s.ids->view().rows}));
    write_npy(fresh / "id_ends.npy", npy_array(s.id_ends->view().data, {s.id_ends->view().rows}));
    write_npy(fresh / "labels.npy", npy_array(s.labels->view().data, {s.labels->view().rows}));
    s.index->save(fresh);
  } catch (...) {  // a full disk costs an older index nothing, and a new one leaves no folder
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    fs::remove(folder / kUnfinished, ignored);
    if (!was_there) fs::remove(folder, ignored);
    throw;
  }
  store::guarded([&] {
    move_in_place(folder);
    fs::remove(folder / kUnfinished);
  });
}

FeatureIndex FeatureIndex::open(const fs::path& folder) {
  FeatureIndex opened;
  State& s = *opened.state_;
  s.index = Index::open(folder);
  s.reduction = Reduction::open(folder);
  s.record = extraction_record(s.reduction.origin(), folder);
  s.ids.emplace(NpyFile::open(folder / "ids.npy"));
  s.id_ends.emplace(NpyFile::open(folder / "id_ends.npy"));
  s.labels.emplace(NpyFile::open(folder / "labels.npy"));
  const size_t rows = s.index->rows();
  search::require_array(s.ids->view().cols == 1, folder / "ids.npy", "one column of bytes");
  search::require_array(s.id_ends->view().rows == rows && s.id_ends->view().cols == 1,
                        folder / "id_ends.npy", "one number per vector");
  search::require_array(s.labels->view().rows == rows && s.labels->view().cols == 1,
                        folder / "labels.npy", "one number per vector");
  if (s.index->width() != s.reduction.output_width())
    fail(fmt::format("expected vectors of {} columns as features.json has it, found {}",
                     s.reduction.output_width(), s.index->width()),
         (folder / "vectors.npy").string(), "build the index again");
  return opened;
}

double FeatureIndex::recall(size_t k, size_t sample, Pool& pool,
                            const SearchOptions& options) const {
  const State& s = *state_;
  const size_t rows = s.index->rows(), count = std::min(sample, rows);
  k = std::min(k, rows - 1);
  if (s.index->kind() == IndexKind::exact || k == 0 || count == 0) return 1;
  if (s.rows.rows() != rows)
    fail("recall is measured where an index is built: an opened one has no rows to compare with",
         s.record.place, "build it again with FeatureIndex::build");
  std::vector<size_t> chosen(count);
  for (size_t i = 0; i < count; ++i) chosen[i] = i * rows / count;
  return recall_of_rows(*s.index, s.rows, chosen, k, pool, options);
}

bool is_index(const fs::path& folder) {
  std::error_code ignored;  // what cannot be looked at is none
  return fs::is_regular_file(folder / "index.json", ignored);
}

Neighbours search_store(const Store& store, const Reduction& reduction, View<const float> queries,
                        size_t k, Metric metric, Pool& pool) {
  if (k == 0 || k > store.rows())
    fail(fmt::format("expected k from 1 to {} rows, found k = {}", store.rows(), k),
         store.folder().string(), "use another k");
  struct Found {
    double value;
    uint32_t row;
  };
  std::vector<std::vector<Found>> best(queries.rows);
  const auto nearer = [&](const Found& x, const Found& y) {
    return metric == Metric::euclidean ? x.value < y.value : x.value > y.value;
  };
  reduction.each_part(store, pool, [&](size_t first, View<const float> part) {
    const Neighbours found = knn(part, queries, std::min(k, part.rows), pool, {.metric = metric});
    for (size_t q = 0; q < queries.rows; ++q) {
      for (size_t b = 0; b < found.index.cols(); ++b)
        best[q].push_back({found.value(q, b), uint32_t(first + found.index(q, b))});
      // Stable: equal values may hide keys that differ, whose order knn() has found, and earlier
      // parts hold smaller rows.
      std::stable_sort(best[q].begin(), best[q].end(), nearer);
      if (best[q].size() > k) best[q].resize(k);
    }
  });
  Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  for (size_t q = 0; q < queries.rows; ++q)
    for (size_t b = 0; b < k; ++b)
      out.index(q, b) = best[q][b].row, out.value(q, b) = best[q][b].value;
  return out;
}

}  // namespace fungi
