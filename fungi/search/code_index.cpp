// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/code_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "fungi/base/atomic_file.h"
#include "fungi/base/cpu.h"
#include "fungi/base/json.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/checkpoint/npy_growing.h"
#include "fungi/search/kmeans.h"
#include "fungi/search/knn.h"
#include "fungi/search/portable_codes.h"

namespace fungi {
namespace {

using Path = std::filesystem::path;
using namespace search;

constexpr const char *kDescription = "index.json", *kFormat = "fungi-code-index";
constexpr size_t kRowsPerCentre = 128;  // that centres are found from
constexpr size_t kAssigned = 1 << 16;   // rows whose lists are found at once
constexpr size_t kPart = 256;           // rows scanned by one call
constexpr size_t kBlock = 512;          // queries that go over the lists together
constexpr size_t kAhead = 4;            // rows fetched before their turn

size_t code_width(size_t width) { return round_up(width, kCodeMultiple); }

size_t panels_of(size_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

Matrix<float> find_centres(View<const float> rows, const CodeIndexOptions& options, Pool& pool) {
  KMeansOptions k;
  k.clusters = std::min(options.lists, rows.rows);
  k.seed = options.seed;
  k.rows_per_cluster = 0;
  k.progress = options.progress;
  const size_t wanted = k.clusters * kRowsPerCentre;
  if (wanted >= rows.rows) return std::move(kmeans(rows, k, pool).centres);
  // One from each of as many equal stretches.
  const RandomStream random(options.seed, "code index");
  std::vector<size_t> some(wanted);
  for (size_t i = 0; i < wanted; ++i) {
    const size_t begin = i * rows.rows / wanted, end = (i + 1) * rows.rows / wanted;
    some[i] = begin + random.bits(i) % (end - begin);
  }
  return std::move(kmeans(gather(rows, some), k, pool).centres);
}

// Lists are probed by direction: of two that are equally near, the one of shorter rows would lose.
Matrix<float> directions_of(View<const float> centres) {
  Matrix<float> out = copy_of(centres);
  const ExactKey exact(Metric::inner_product, centres.cols);
  for (size_t i = 0; i < out.rows(); ++i)
    if (const double norm = exact.norm(out.row(i)); norm > 0)
      for (size_t c = 0; c < out.cols(); ++c) out(i, c) = float(out(i, c) / norm);
  return out;
}

// The codes of some lists that follow each other, panel by panel.
struct Codes {
  Codes(size_t places, size_t width)
      : codes(places * width), scales(places), offsets(places), numbers(places, -1) {}
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> offsets, numbers;
};

void encode_row(View<const float> rows, uint32_t row, size_t place, size_t width, Codes& out) {
  std::vector<float> v(width, 0);
  std::vector<int8_t> codes(width);
  std::copy_n(rows.row(row), rows.cols, v.data());
  const CodeTerms terms = encode_portably(false, width, v.data(), codes.data());
  int8_t* to = out.codes.data() + place / kPanelRows * kPanelRows * width + place % kPanelRows * 4;
  for (size_t t = 0; t < width; t += 4, to += kPanelRows * 4) std::memcpy(to, &codes[t], 4);
  out.scales[place] = float(terms.scale);
  out.offsets[place] = kCodeOffset * terms.sum;
  out.numbers[place] = int32_t(row);
}

// Rows are read in their order, never list by list: of more rows than fit into memory, a list's
// lie one page each all over the disk.
Codes encode_lists(View<const float> rows, std::span<const uint32_t> list_of, size_t begin,
                   size_t end, std::span<const size_t> places, size_t width, Pool& pool) {
  std::vector<size_t> next{0};
  for (size_t list = begin; list < end; ++list) next.push_back(next.back() + places[list]);
  Codes out(next.back(), width);
  struct Task {
    uint32_t row;
    size_t place;
  };
  std::vector<Task> tasks;
  for (size_t first = 0; first < rows.rows; first += kAssigned) {
    tasks.clear();
    for (size_t row = first; row < std::min(first + kAssigned, rows.rows); ++row)
      if (list_of[row] >= begin && list_of[row] < end)
        tasks.push_back({uint32_t(row), next[list_of[row] - begin]++});
    pool.parallel_for(tasks.size(), 64, [&](size_t from, size_t to, unsigned) {
      for (size_t t = from; t < to; ++t)
        encode_row(rows, tasks[t].row, tasks[t].place, width, out);
    });
  }
  return out;
}

struct Candidate {
  float key;  // minus the approximate product
  uint32_t row;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.row < b.row;
  }
};

// The best of one query so far.
class Shortlist {
 public:
  explicit Shortlist(size_t most) : most_(most) {}
  float limit() const { return limit_; }
  void add(Candidate candidate) {
    list_.push_back(candidate);
    if (list_.size() >= 4 * most_) prune();
  }
  void prune() {
    if (list_.size() <= most_) return;
    std::nth_element(list_.begin(), list_.begin() + ptrdiff_t(most_ - 1), list_.end());
    list_.resize(most_);
    limit_ = list_.back().key;
  }
  // In the order of rows: near ones lie near each other.
  const std::vector<Candidate>& finish() {
    prune();
    std::sort(list_.begin(), list_.end(),
              [](const Candidate& a, const Candidate& b) { return a.row < b.row; });
    return list_;
  }

 private:
  size_t most_;
  float limit_ = std::numeric_limits<float>::infinity();
  std::vector<Candidate> list_;
};

}  // namespace

struct CodeIndex::State {
  explicit State(const Path& folder)
      : centres(NpyFile::open(folder / "centres.npy")),
        starts(NpyFile::open(folder / "starts.npy")),
        codes(NpyFile::open(folder / "codes.npy")),
        scales(NpyFile::open(folder / "scales.npy")),
        offsets(NpyFile::open(folder / "offsets.npy")),
        numbers(NpyFile::open(folder / "numbers.npy")),
        list_start(starts.view<int64_t>().data) {}

  size_t lists() const { return centres.rows(); }
  size_t size_of(size_t list) const { return size_t(list_start[list + 1] - list_start[list]); }

  void check(const Path& folder) const;
  void search_block(View<const float> queries, const Neighbours& order, size_t first, size_t k,
                    const CodeSearchOptions& options, Neighbours& out) const;
  void scan_list(size_t list, std::span<const uint32_t> queries, const Matrix<uint8_t>& codes_of,
                 std::span<const float> query_scales, std::vector<Shortlist>& best) const;

  View<const float> rows;
  NpyFile centres, starts, codes, scales, offsets, numbers;
  const int64_t* list_start;
  std::vector<size_t> first_panel;  // of each list
  std::unique_ptr<ExactKey> exact;
};

void CodeIndex::build(View<const float> rows, const Path& folder, const CodeIndexOptions& options,
                      Pool& pool) {
  check_search(rows, rows, 1, rows.rows);
  if (options.lists == 0) fail("expected at least one list, found 0", "index", "");
  if (rows.rows > size_t(INT32_MAX) || code_width(rows.cols) > kWidestCodes)
    fail(fmt::format("expected at most 2^31 - 1 rows of {} numbers, found {} of {}", kWidestCodes,
                     rows.rows, rows.cols),
         "index", "search exactly");
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / kDescription);
  const Matrix<float> centres = find_centres(rows, options, pool);
  const size_t lists = centres.rows(), width = code_width(rows.cols);
  std::vector<uint32_t> list_of;
  std::vector<int64_t> starts(lists + 1, 0);
  for (size_t first = 0; first < rows.rows; first += kAssigned) {
    if (options.progress) options.progress(first, rows.rows);
    const View<const float> some = rows.slice(first, std::min(kAssigned, rows.rows - first));
    require_finite(some, "rows", pool);
    for (uint32_t list : assign_to_centres(some, centres, pool)) {
      list_of.push_back(list);
      ++starts[list + 1];
    }
  }
  if (options.progress) options.progress(rows.rows, rows.rows);
  std::vector<size_t> places;
  for (size_t list = 0; list < lists; ++list)
    places.push_back(panels_of(size_t(starts[list + 1])) * kPanelRows);
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  write_npy(folder / "centres.npy", npy_array(directions_of(centres)));
  write_npy(folder / "starts.npy", npy_array(starts));
  GrowingNpy codes(folder / "codes.npy", "|u1", kPanelRows * width, kPanelRows * width);
  GrowingNpy scales(folder / "scales.npy", "<f4", 4, 0),
      offsets(folder / "offsets.npy", "<i4", 4, 0), numbers(folder / "numbers.npy", "<i4", 4, 0);
  for (size_t begin = 0, end = 0; begin < lists; begin = end) {
    size_t held = places[end++];
    while (end < lists && (held + places[end]) * width <= options.held_bytes) held += places[end++];
    const Codes out = encode_lists(rows, list_of, begin, end, places, width, pool);
    codes.append(std::span<const int8_t>(out.codes));
    scales.append(std::span<const float>(out.scales));
    offsets.append(std::span<const int32_t>(out.offsets));
    numbers.append(std::span<const int32_t>(out.numbers));
    if (options.progress) options.progress(size_t(starts[end]), rows.rows);
  }
  for (GrowingNpy* file : {&codes, &scales, &offsets, &numbers}) file->finish();
  const nlohmann::ordered_json description{
      {"format", kFormat},      {"version", 1},   {"rows", rows.rows},   {"width", rows.cols},
      {"asked", options.lists}, {"lists", lists}, {"seed", options.seed}};
  write_file_atomically(folder / kDescription, std::string_view(description.dump(2) + "\n"));
}

bool CodeIndex::is_there(const Path& folder, size_t lists) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(folder / kDescription, unknown)) return false;
  const nlohmann::json json = parse_json(FileBytes::map(folder / kDescription)->text());
  return json.is_object() && json.value("format", nlohmann::json()) == kFormat &&
         json.value("version", nlohmann::json()) == 1 &&
         json.value("asked", nlohmann::json()) == lists;
}

void CodeIndex::State::check(const Path& folder) const {
  const auto require = [&](bool condition, const char* file, const char* expected) {
    if (!condition)
      fail(fmt::format("expected {}", expected), (folder / file).string(),
           "remove the folder of the index: it is built again");
  };
  require(centres.cols() == rows.cols, "centres.npy", "centres as wide as the rows");
  const View<const int64_t> start = starts.view<int64_t>();
  bool ascending = start.rows == lists() + 1 && start.cols == 1 && start(0, 0) == 0 &&
                   start(lists(), 0) == int64_t(rows.rows);
  for (size_t l = 0; ascending && l < lists(); ++l) ascending = start(l, 0) <= start(l + 1, 0);
  require(ascending, "starts.npy", "ascending starts of lists, from 0 to the rows");
  size_t panels = 0;
  for (size_t l = 0; l < lists(); ++l) panels += panels_of(size_of(l));
  require(codes.rows() == panels && codes.cols() == kPanelRows * code_width(rows.cols), "codes.npy",
          "codes of sixteen rows in each panel");
  for (const auto& [file, name] :
       {std::pair(&scales, "scales.npy"), {&offsets, "offsets.npy"}, {&numbers, "numbers.npy"}})
    require(file->rows() == panels * kPanelRows && file->cols() == 1, name,
            "one number for each place of a panel");
  const int32_t* number = numbers.view<int32_t>().data;
  bool known = true;
  for (size_t i = 0; known && i < panels * kPanelRows; ++i)
    known = number[i] >= -1 && number[i] < int64_t(rows.rows);
  require(known, "numbers.npy", "numbers of rows");
}

CodeIndex CodeIndex::open(const Path& folder, View<const float> rows) {
  auto state = std::make_unique<State>(folder);
  state->rows = rows;
  state->check(folder);
  size_t panel = 0;
  for (size_t l = 0; l < state->lists(); ++l) {
    state->first_panel.push_back(panel);
    panel += panels_of(state->size_of(l));
  }
  state->exact = std::make_unique<ExactKey>(Metric::inner_product, rows.cols);
  return CodeIndex(std::move(state));
}

CodeIndex::CodeIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
CodeIndex::CodeIndex(CodeIndex&&) noexcept = default;
CodeIndex& CodeIndex::operator=(CodeIndex&&) noexcept = default;
CodeIndex::~CodeIndex() = default;
size_t CodeIndex::lists() const { return state_->lists(); }

Neighbours CodeIndex::search(View<const float> queries, size_t k, Pool& pool,
                             const CodeSearchOptions& options) const {
  const State& s = *state_;
  check_search(s.rows, queries, k, s.rows.rows);
  const size_t probes = std::clamp<size_t>(options.probes, 1, s.lists());
  const Neighbours order =
      knn(s.centres.view<float>(), queries, probes, pool, {.metric = Metric::inner_product});
  require_finite(queries, "queries", pool);
  Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  const size_t share = (queries.rows + pool.threads() - 1) / pool.threads();
  pool.parallel_for(
      queries.rows, std::clamp<size_t>(share, 1, kBlock), [&](size_t begin, size_t end, unsigned) {
        s.search_block(queries.slice(begin, end - begin), order, begin, k, options, out);
      });
  return out;
}

// A few queries after the other against one list, all of a table's group at once.
void CodeIndex::State::scan_list(size_t list, std::span<const uint32_t> queries,
                                 const Matrix<uint8_t>& codes_of,
                                 std::span<const float> query_scales,
                                 std::vector<Shortlist>& best) const {
  const ScanKernel& kernel = exact->kernel();
  const size_t group = kernel.query_group, width = codes_of.cols(), count = size_of(list);
  const size_t place = first_panel[list] * kPanelRows;
  const auto* panels = reinterpret_cast<const int8_t*>(codes.view<uint8_t>().data);
  const float* scale = scales.view<float>().data;
  const int32_t *offset = offsets.view<int32_t>().data, *number = numbers.view<int32_t>().data;
  static constexpr std::array<float, kPart> zeros{};
  Matrix<uint8_t> together(1, width * group);
  std::vector<Hit> hits(group * kPart);
  std::array<uint32_t, kQueryGroups> counts;
  for (size_t first = 0; first < queries.size(); first += group) {
    const size_t here = std::min(group, queries.size() - first);
    std::array<QueryTerms, kQueryGroups> terms;
    terms.fill({0, 0, 0, -std::numeric_limits<float>::infinity()});
    for (size_t q = 0; q < here; ++q) {
      const uint32_t query = queries[first + q];
      terms[q] = {query_scales[query], 0, 0, best[query].limit()};
      for (size_t t = 0; t < width; t += 4)
        std::memcpy(together.data() + (t * group + 4 * q), codes_of.row(query) + t, 4);
    }
    for (size_t row = 0; row < count; row += kPart) {
      const size_t at = place + row, rows_here = std::min(kPart, count - row);
      const RowTerms row_terms{zeros.data(), scale + at, zeros.data(), zeros.data(), offset + at};
      kernel.scan_bytes(width, rows_here, together.data(), panels + at * width, row_terms,
                        terms.data(), hits.data(), kPart, counts.data());
      for (size_t q = 0; q < here; ++q) {
        Shortlist& mine = best[queries[first + q]];
        for (uint32_t h = 0; h < counts[q]; ++h) {
          const Hit& hit = hits[q * kPart + h];
          mine.add({hit.lower, uint32_t(number[at + hit.row])});
        }
        if (counts[q]) terms[q].limit = mine.limit();
      }
    }
  }
}

void CodeIndex::State::search_block(View<const float> queries, const Neighbours& order,
                                    size_t first, size_t k, const CodeSearchOptions& options,
                                    Neighbours& out) const {
  const size_t width = code_width(rows.cols), most = std::max(options.rerank, k);
  Matrix<uint8_t> codes_of(queries.rows, width);
  std::vector<float> query_scales(queries.rows), v(width, 0);
  std::vector<std::vector<uint32_t>> asked(lists());
  for (size_t q = 0; q < queries.rows; ++q) {
    std::copy_n(queries.row(q), queries.cols, v.data());
    auto* codes_here = reinterpret_cast<int8_t*>(codes_of.row(q));
    query_scales[q] = float(encode_portably(true, width, v.data(), codes_here).scale);
    for (size_t c = 0; c < width; ++c) codes_of(q, c) = uint8_t(codes_here[c] + kCodeOffset);
    size_t reached = 0;
    const size_t probes = order.index.cols();
    for (size_t p = 0; p < probes; ++p) reached += size_of(order.index(first + q, p));
    const bool all = reached < k;
    for (size_t p = 0; p < (all ? lists() : probes); ++p)
      asked[all ? p : order.index(first + q, p)].push_back(uint32_t(q));
  }
  std::vector<Shortlist> best(queries.rows, Shortlist(most));
  for (size_t list = 0; list < lists(); ++list)
    if (!asked[list].empty()) scan_list(list, asked[list], codes_of, query_scales, best);
  std::vector<Best> heap(k);
  for (size_t q = 0; q < queries.rows; ++q) {
    size_t size = 0;
    Selection selection(heap.data(), k, size);
    const std::vector<Candidate>& chosen = best[q].finish();
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i + kAhead < chosen.size()) {
        const auto* near = reinterpret_cast<const char*>(rows.row(chosen[i + kAhead].row));
        for (size_t b = 0; b < std::min<size_t>(rows.cols * 4, 4096); b += 64)
          __builtin_prefetch(near + b);
      }
      selection.offer({(*exact)(queries.row(q), rows.row(chosen[i].row)), chosen[i].row});
    }
    selection.sort();
    for (size_t b = 0; b < k; ++b) {
      out.index(first + q, b) = heap[b].row;
      out.value(first + q, b) = exact->value(heap[b].key);
    }
  }
}

}  // namespace fungi
