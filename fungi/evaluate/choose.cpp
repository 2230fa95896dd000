// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/evaluate/labels.h"
#include "fungi/kernel/kernel.h"

namespace fungi {
namespace {

constexpr size_t kMostCombinations = 4096;
constexpr size_t kQueries = 32;  // whose products with all rows are held by a thread

// One weight per block, the first one's always 1.
using Weights = std::vector<double>;

std::vector<Weights> grid(size_t blocks, const std::vector<double>& weights) {
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

std::string name_of(std::vector<StoreBlock> blocks, const Weights& weights, bool all_weights) {
  std::vector<StoreBlock> kept;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (weights[b] == 0) continue;
    blocks[b].weight = weights[b];
    kept.push_back(blocks[b]);
  }
  return features_of(kept, all_weights);
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

// Which fold a row belongs to: rows of a class are dealt out one after the other, in a drawn order.
std::vector<size_t> folds_of(const Classes& classes, const ChooseOptions& o) {
  std::vector<uint32_t> order =
      TorchRandom(uint32_t(o.seed)).permutation(uint32_t(classes.index.size()));
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return classes.index[a] < classes.index[b]; });
  std::vector<size_t> fold(order.size());
  for (size_t i = 0; i < order.size(); ++i) fold[order[i]] = i % o.folds;
  return fold;
}

// A block of the rows, each of length 1, ready for products.
struct Part {
  Matrix<float> rows;
  kernel::PackedMatrix packed;
  std::vector<float> half_square;  // of each row: 0.5, or 0 of a row that is 0
};

// Votes of the k nearest of one row under all combinations; of equal votes the smallest class wins.
class Judge {
 public:
  Judge(const Classes& classes, size_t k) : classes_(classes), k_(k), votes_(classes.count()) {}

  // scores: larger is nearer. Rows equally near: the one that comes first.
  bool right(const std::vector<float>& scores, size_t self) {
    nearest_.clear();
    for (size_t j = 0; j < scores.size(); ++j) {
      if (nearest_.size() == k_ && !(scores[j] > nearest_.front().score)) continue;
      if (j == self) continue;
      if (nearest_.size() == k_) {
        std::pop_heap(nearest_.begin(), nearest_.end(), nearer);
        nearest_.pop_back();
      }
      nearest_.push_back({scores[j], uint32_t(j)});
      std::push_heap(nearest_.begin(), nearest_.end(), nearer);
    }
    std::fill(votes_.begin(), votes_.end(), 0);
    for (const Near& near : nearest_) ++votes_[classes_.index[near.row]];
    const auto most = std::max_element(votes_.begin(), votes_.end());
    return size_t(most - votes_.begin()) == classes_.index[self];
  }

 private:
  struct Near {
    float score;
    uint32_t row;
  };
  static bool nearer(const Near& a, const Near& b) {  // the farthest stands at the front
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  }
  const Classes& classes_;
  size_t k_;
  std::vector<uint32_t> votes_;
  std::vector<Near> nearest_;
};

// 1 where the combination (row) classifies the sample (column) rightly.
Matrix<uint8_t> hits_of(const std::vector<Part>& parts, const std::vector<Weights>& grid,
                        const Classes& classes, const ChooseOptions& o, size_t k, Pool& pool) {
  const size_t n = classes.index.size();
  const kernel::Kernel& kernel = kernel::f32_kernel();
  Matrix<uint8_t> hits(grid.size(), n);
  std::mutex reporting;
  size_t done = 0;
  pool.parallel_for(n, kQueries, [&](size_t begin, size_t end, unsigned) {
    Buffer scratch;
    std::vector<Matrix<float>> products;
    for (const Part& part : parts) {
      products.emplace_back(end - begin, n);
      kernel::multiply(kernel, part.rows.view().slice(begin, end - begin), part.packed, nullptr,
                       products.back(), scratch);
      for (size_t i = 0; i < end - begin; ++i)
        for (size_t j = 0; j < n; ++j) products.back()(i, j) -= part.half_square[j];
    }
    Judge judge(classes, k);
    std::vector<float> scores(n);
    for (size_t i = begin; i < end; ++i)
      for (size_t c = 0; c < grid.size(); ++c) {
        std::copy_n(products[0].row(i - begin), n, scores.data());
        for (size_t b = 1; b < parts.size(); ++b) {
          if (grid[c][b] == 0) continue;
          const float square = float(grid[c][b] * grid[c][b]);
          const float* add = products[b].row(i - begin);
          for (size_t j = 0; j < n; ++j) scores[j] += square * add[j];
        }
        hits(c, i) = judge.right(scores, i);
      }
    const std::lock_guard lock(reporting);
    done += end - begin;
    if (o.progress) o.progress(done, n);
  });
  return hits;
}

size_t count_hits(View<const uint8_t> hits, size_t combination, const std::vector<uint8_t>& used) {
  size_t count = 0;
  for (size_t i = 0; i < used.size(); ++i) count += used[i] & hits(combination, i);
  return count;
}

// Combinations whose weights differ by one step of one block are nearly the same features: the mean
// of a combination (twice) and of those is steadier than its own score, and the best of many steady
// scores promises less than it cannot keep.
class Grid {
 public:
  Grid(size_t blocks, size_t values) : blocks_(blocks), values_(values) {}

  size_t best(const std::vector<size_t>& score) const {
    size_t best = 0;
    double most = -1;
    for (size_t c = 0; c < score.size(); ++c) {
      double sum = 2 * double(score[c]), weight = 2;
      size_t step = 1;
      for (size_t b = 1; b < blocks_; ++b, step *= values_) {
        const size_t digit = c / step % values_;
        if (digit > 0) sum += double(score[c - step]), ++weight;
        if (digit + 1 < values_) sum += double(score[c + step]), ++weight;
      }
      // Equal ones: the first has smaller weights, so that what does not help is left out.
      if (sum / weight > most + 1e-9) most = sum / weight, best = c;
    }
    return best;
  }

 private:
  size_t blocks_, values_;
};

}  // namespace

Choice choose_features(const Store& train, const ChooseOptions& o, Pool& pool) {
  require_labels(train);
  std::vector<StoreBlock> blocks = train.select(o.features);
  require_side_by_side(blocks, train.folder().string());
  if (blocks.size() < 2)
    fail(
        fmt::format("the store holds {} block to choose from, expected two or more", blocks.size()),
        train.folder().string(), "extract it with `objectives`");
  const bool weighted = std::any_of(blocks.begin(), blocks.end(),
                                    [](const StoreBlock& block) { return block.weight != 1; });
  for (StoreBlock& block : blocks) block.weight = 1;
  if (o.folds < 2) fail(fmt::format("{} folds, expected at least 2", o.folds), "`folds`");
  const std::vector<Weights> weights = grid(blocks.size(), o.weights);
  const std::vector<size_t> rows = drawn_rows(train.rows(), o);
  if (rows.size() < o.folds || rows.size() <= o.k)
    fail(
        fmt::format("{} rows are too few for {} neighbours in {} folds", rows.size(), o.k, o.folds),
        train.folder().string(), "extract more samples, or ask for fewer neighbours with `k`");
  const std::vector<int64_t> labels = gather(train.labels(), rows);
  const Classes classes = classes_of(labels);

  std::vector<Part> parts;
  for (const StoreBlock& block : blocks) {
    Part& part = parts.emplace_back();
    part.rows = Matrix<float>(rows.size(), block.width);
    train.read({block}, true, rows, part.rows);
    part.packed = kernel::pack(kernel::f32_kernel(), part.rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = part.rows.row(i);
      part.half_square.push_back(
          std::any_of(row, row + block.width, [](float v) { return v != 0; }) ? 0.5f : 0.0f);
    }
  }
  const Matrix<uint8_t> hits = hits_of(parts, weights, classes, o, o.k, pool);

  Choice choice{.rows = rows.size(), .k = o.k};
  const size_t n = rows.size();
  const auto describe = [&](size_t c) {
    WeightedFeatures one{.features = name_of(blocks, weights[c], weighted), .weights = weights[c]};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) {
      one.accuracy += hits(c, i);
      const double difference = double(hits(c, i)) - double(hits(0, i));
      sum += difference, squares += difference * difference;
    }
    one.accuracy /= double(n);
    one.gain = sum / double(n);
    one.gain_error =
        std::sqrt(std::max(squares / double(n) - one.gain * one.gain, 0.0) / double(n));
    return one;
  };
  const Grid grid_of(blocks.size(), o.weights.size() + 1);
  std::vector<uint8_t> used(n, 1);
  std::vector<size_t> score(weights.size());
  for (size_t c = 0; c < weights.size(); ++c) score[c] = count_hits(hits, c, used);
  const size_t best = grid_of.best(score);
  choice.first = describe(0);
  choice.chosen = describe(best);
  for (size_t c = 0; c < weights.size(); ++c)
    if (std::all_of(weights[c].begin(), weights[c].end(), [](double w) { return w == 1; }))
      choice.equal = describe(c);

  // Each set of blocks with the best of its weights, fewer blocks first.
  std::vector<size_t> best_of(size_t{1} << (blocks.size() - 1), SIZE_MAX);
  for (size_t c = 0; c < weights.size(); ++c) {
    size_t set = 0;
    for (size_t b = 1; b < blocks.size(); ++b) set |= size_t(weights[c][b] != 0) << (b - 1);
    if (best_of[set] == SIZE_MAX || score[c] > score[best_of[set]]) best_of[set] = c;
  }
  for (const size_t c : best_of) choice.best_of_blocks.push_back(describe(c));
  std::stable_sort(choice.best_of_blocks.begin(), choice.best_of_blocks.end(),
                   [](const WeightedFeatures& a, const WeightedFeatures& b) {
                     const auto kept = [](const WeightedFeatures& f) {
                       return std::count_if(f.weights.begin(), f.weights.end(),
                                            [](double w) { return w != 0; });
                     };
                     return kept(a) < kept(b);
                   });

  // What such a choice is worth: made without a fold, scored on it.
  const std::vector<size_t> fold = folds_of(classes, o);
  double sum = 0, squares = 0;
  for (size_t f = 0; f < o.folds; ++f) {
    for (size_t i = 0; i < n; ++i) used[i] = fold[i] != f;
    for (size_t c = 0; c < weights.size(); ++c) score[c] = count_hits(hits, c, used);
    const size_t picked = grid_of.best(score);
    for (size_t i = 0; i < n; ++i) {
      if (used[i]) continue;
      const double difference = double(hits(picked, i)) - double(hits(0, i));
      choice.expected += hits(picked, i);
      sum += difference, squares += difference * difference;
    }
  }
  choice.expected /= double(n);
  choice.expected_gain = sum / double(n);
  choice.expected_error = std::sqrt(
      std::max(squares / double(n) - choice.expected_gain * choice.expected_gain, 0.0) / double(n));

  if (train.rows() > n)
    choice.notes.push_back(
        fmt::format("{} of {} rows were drawn, because the work grows with the square of their "
                    "number; `most_rows` says how many",
                    n, train.rows()));
  if (const auto once = std::count(classes.sizes.begin(), classes.sizes.end(), size_t{1}); once > 0)
    choice.notes.push_back(fmt::format(
        "{} of {} classes have one row, which no other row can classify", once, classes.count()));
  if (choice.expected_gain < choice.expected_error)
    choice.notes.push_back(
        "the gain is not above its error: the choice may be no better than the embedding alone");
  return choice;
}

}  // namespace fungi
