// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/choose_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/base/random.h"

namespace fungi::choosing {
namespace {

constexpr size_t kMostCombinations = 4096;
constexpr size_t kQueries = 32;  // whose products with all rows are held by a thread

std::vector<Weights> grid_of(size_t blocks, const std::vector<double>& weights) {
  std::vector<double> values{0};
  for (const double w : weights) {
    if (!(w > 0) || !std::isfinite(w))
      fail(fmt::format("a weight is {}, expected a number above 0", w), "`weights`",
           "0 is always tried");
    values.push_back(w);
  }
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end())
    fail("a weight stands there twice", "`weights`");
  double count = 1;
  for (size_t b = 1; b < blocks; ++b) count *= double(values.size());
  if (count > double(kMostCombinations))
    fail(fmt::format("{} blocks with {} weights have {} combinations, expected at most {}", blocks,
                     values.size(), count, kMostCombinations),
         "`features`", "name fewer blocks, or fewer weights");
  std::vector<Weights> all;
  for (size_t c = 0; c < size_t(count); ++c) {
    Weights one(blocks, 1);
    size_t rest = c;
    for (size_t b = 1; b < blocks; ++b, rest /= values.size())
      one[b] = values[rest % values.size()];
    all.push_back(std::move(one));
  }
  return all;
}

// The rows that take part, ascending.
std::vector<size_t> drawn_rows(size_t rows, const ChooseOptions& o) {
  std::vector<size_t> all(rows);
  std::iota(all.begin(), all.end(), size_t{0});
  if (rows <= o.most_rows) return all;
  const std::vector<uint32_t> order = TorchRandom(uint32_t(o.seed)).permutation(uint32_t(rows));
  all.assign(order.begin(), order.begin() + ptrdiff_t(o.most_rows));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Field field_of(const Store& store, const ChooseOptions& o) {
  Field field{.blocks = store.select(o.features)};
  std::vector<StoreBlock>& blocks = field.blocks;
  require_side_by_side(blocks, store.folder().string());
  if (blocks.size() < 2)
    fail(
        fmt::format("the store holds {} block to choose from, expected two or more", blocks.size()),
        store.folder().string(), "extract it with `objectives`");
  field.weighted = std::any_of(blocks.begin(), blocks.end(),
                               [](const StoreBlock& block) { return block.weight != 1; });
  for (StoreBlock& block : blocks) block.weight = 1;
  field.grid = grid_of(blocks.size(), o.weights);
  field.rows = drawn_rows(store.rows(), o);
  if (field.rows.size() < o.folds || field.rows.size() <= o.k)
    fail(fmt::format("{} rows are too few for {} neighbours in {} folds", field.rows.size(), o.k,
                     o.folds),
         store.folder().string(), "extract more samples, or ask for fewer neighbours with `k`");
  return field;
}

std::string name_of(const Field& field, const Weights& weights) {
  std::vector<StoreBlock> kept;
  for (size_t b = 0; b < field.blocks.size(); ++b) {
    if (weights[b] == 0) continue;
    kept.push_back(field.blocks[b]);
    kept.back().weight = weights[b];
  }
  return features_of(kept, field.weighted);
}

std::vector<Part> read_parts(const Store& store, const std::vector<StoreBlock>& blocks,
                             const std::vector<size_t>& rows) {
  std::vector<Part> parts;
  for (const StoreBlock& block : blocks) {
    Part& part = parts.emplace_back();
    part.rows = Matrix<float>(rows.size(), block.width);
    store.read({block}, true, rows, part.rows);
    part.packed = kernel::pack(kernel::f32_kernel(), part.rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = part.rows.row(i);
      part.half_square.push_back(
          std::any_of(row, row + block.width, [](float v) { return v != 0; }) ? 0.5f : 0.0f);
    }
  }
  return parts;
}

std::vector<Matrix<float>> products_of(const std::vector<Part>& parts, size_t begin, size_t end) {
  const size_t n = parts[0].rows.rows();
  Buffer scratch;
  std::vector<Matrix<float>> products;
  for (const Part& part : parts) {
    products.emplace_back(end - begin, n);
    kernel::multiply(kernel::f32_kernel(), part.rows.view().slice(begin, end - begin), part.packed,
                     nullptr, products.back(), scratch);
    for (size_t i = 0; i < end - begin; ++i)
      for (size_t j = 0; j < n; ++j) products.back()(i, j) -= part.half_square[j];
  }
  return products;
}

void score_row(const std::vector<Matrix<float>>& products, size_t row, const Weights& weights,
               std::vector<float>& scores) {
  scores.assign(products[0].row(row), products[0].row(row) + products[0].cols());
  for (size_t b = 1; b < products.size(); ++b) {
    if (weights[b] == 0) continue;
    const float square = float(weights[b] * weights[b]);
    const float* add = products[b].row(row);
    for (size_t j = 0; j < scores.size(); ++j) scores[j] += square * add[j];
  }
}

// In a heap the farthest stands at the front.
static bool is_nearer(const Nearest::Near& a, const Nearest::Near& b) {
  return a.score != b.score ? a.score > b.score : a.row < b.row;
}

const std::vector<Nearest::Near>& Nearest::find(const std::vector<float>& scores, size_t self) {
  nearest_.clear();
  for (size_t j = 0; j < scores.size(); ++j) {
    if (nearest_.size() == k_ && !(scores[j] > nearest_.front().score)) continue;
    if (j == self) continue;
    if (nearest_.size() == k_) {
      std::pop_heap(nearest_.begin(), nearest_.end(), is_nearer);
      nearest_.pop_back();
    }
    nearest_.push_back({scores[j], uint32_t(j)});
    std::push_heap(nearest_.begin(), nearest_.end(), is_nearer);
  }
  return nearest_;
}

void each_part_of_rows(size_t rows, const ChooseOptions& o, Pool& pool,
                       const std::function<void(size_t begin, size_t end)>& visit) {
  std::mutex reporting;
  size_t done = 0;
  pool.parallel_for(rows, kQueries, [&](size_t begin, size_t end, unsigned) {
    visit(begin, end);
    const std::lock_guard lock(reporting);
    done += end - begin;
    if (o.progress) o.progress(done, rows);
  });
}

const std::vector<Nearest::Near>& Nearest::find_in_order(const std::vector<float>& scores,
                                                         size_t self) {
  find(scores, self);
  std::sort_heap(nearest_.begin(), nearest_.end(), is_nearer);
  return nearest_;
}

// Combinations whose weights differ by one step of one block are nearly the same features: the mean
// of a combination (twice) and of those is steadier than its own score, and the best of many steady
// scores promises less than it cannot keep.
std::vector<double> smoothed(const Field& field, const std::vector<double>& score) {
  const size_t blocks = field.blocks.size();
  const auto values = size_t(std::lround(std::pow(double(score.size()), 1.0 / double(blocks - 1))));
  std::vector<double> out;
  for (size_t c = 0; c < score.size(); ++c) {
    double sum = 2 * score[c], weight = 2;
    size_t step = 1;
    for (size_t b = 1; b < blocks; ++b, step *= values) {
      const size_t digit = c / step % values;
      if (digit > 0) sum += score[c - step], ++weight;
      if (digit + 1 < values) sum += score[c + step], ++weight;
    }
    out.push_back(sum / weight);
  }
  return out;
}

size_t best_of(const std::vector<double>& score) {
  size_t best = 0;
  for (size_t c = 1; c < score.size(); ++c)
    if (score[c] > score[best] + 1e-12) best = c;
  return best;
}

double steps_between(const Field& field, size_t a, size_t b) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Weights& weights : field.grid)
    if (weights[1] > 0) smallest = std::min(smallest, weights[1]);
  const auto level = [&](double weight) {
    return std::log2(weight > 0 ? weight : smallest / 2);
  };
  double steps = 0;
  for (size_t block = 1; block < field.blocks.size(); ++block)
    steps += std::abs(level(field.grid[a][block]) - level(field.grid[b][block]));
  return steps;
}

size_t nearest_to_equal(const Field& field) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < field.grid.size(); ++c) {
    double away = 0;
    for (const double w : field.grid[c]) away += w > 0 ? std::abs(std::log2(w)) : 1e6;
    if (away < least) least = away, best = c;
  }
  return best;
}

std::vector<size_t> best_of_each_set(const Field& field, const std::vector<double>& score) {
  std::vector<size_t> best(size_t{1} << (field.blocks.size() - 1), SIZE_MAX);
  for (size_t c = 0; c < score.size(); ++c) {
    size_t set = 0;
    for (size_t b = 1; b < field.blocks.size(); ++b)
      set |= size_t(field.grid[c][b] != 0) << (b - 1);
    if (best[set] == SIZE_MAX || score[c] > score[best[set]]) best[set] = c;
  }
  const auto kept = [&](size_t c) {
    return std::count_if(field.grid[c].begin(), field.grid[c].end(),
                         [](double w) { return w != 0; });
  };
  std::stable_sort(best.begin(), best.end(), [&](size_t a, size_t b) { return kept(a) < kept(b); });
  return best;
}

}  // namespace fungi::choosing
