// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/evaluate/choose_parts.h"
#include "fungi/evaluate/labels.h"

namespace fungi {
namespace {

using namespace choosing;

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

// 1 where the combination (row) classifies the sample (column) rightly: by the votes of its k
// nearest; of equal votes the smallest class wins.
Matrix<uint8_t> hits_of(const std::vector<Part>& parts, const std::vector<Weights>& grid,
                        const Classes& classes, const ChooseOptions& o, Pool& pool) {
  const size_t n = classes.index.size();
  Matrix<uint8_t> hits(grid.size(), n);
  each_part_of_rows(n, o, pool, [&](size_t begin, size_t end) {
    const std::vector<Matrix<float>> products = products_of(parts, begin, end);
    Nearest nearest(o.k);
    std::vector<float> scores;
    std::vector<uint32_t> votes(classes.count());
    for (size_t i = begin; i < end; ++i)
      for (size_t c = 0; c < grid.size(); ++c) {
        score_row(products, i - begin, grid[c], scores);
        std::fill(votes.begin(), votes.end(), 0);
        for (const auto& near : nearest.find(scores, i)) ++votes[classes.index[near.row]];
        const auto most = std::max_element(votes.begin(), votes.end());
        hits(c, i) = size_t(most - votes.begin()) == classes.index[i];
      }
  });
  return hits;
}

double count_hits(View<const uint8_t> hits, size_t combination, const std::vector<uint8_t>& used) {
  size_t count = 0;
  for (size_t i = 0; i < used.size(); ++i) count += used[i] & hits(combination, i);
  return double(count);
}

}  // namespace

Choice choose_features(const Store& train, const ChooseOptions& o, Pool& pool) {
  if (std::all_of(train.labels().begin(), train.labels().end(), [](int64_t l) { return l < 0; }))
    fail("expected labels, found none", train.folder().string(),
         "give another draw of the same samples as `draw`: a store extracted with another `seed`");
  require_labels(train);
  if (o.folds < 2) fail(fmt::format("{} folds, expected at least 2", o.folds), "`folds`");
  const Field field = field_of(train, o);
  const std::vector<int64_t> labels = gather(train.labels(), field.rows);
  const Classes classes = classes_of(labels);
  const Matrix<uint8_t> hits =
      hits_of(read_parts(train, field.blocks, field.rows), field.grid, classes, o, pool);

  const size_t n = field.rows.size();
  Choice choice{.rows = n, .k = o.k};
  const auto describe = [&](size_t c) {
    WeightedFeatures one{.features = name_of(field, field.grid[c]), .weights = field.grid[c]};
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
  std::vector<uint8_t> used(n, 1);
  std::vector<double> score(field.grid.size());
  for (size_t c = 0; c < score.size(); ++c) score[c] = count_hits(hits, c, used);
  choice.first = describe(0);
  choice.chosen = describe(best_of(field, score));
  for (size_t c = 0; c < score.size(); ++c)
    if (std::all_of(field.grid[c].begin(), field.grid[c].end(), [](double w) { return w == 1; }))
      choice.equal = describe(c);
  for (const size_t c : best_of_each_set(field, score))
    choice.best_of_blocks.push_back(describe(c));

  // What such a choice is worth: made without a fold, scored on it.
  const std::vector<size_t> fold = folds_of(classes, o);
  double sum = 0, squares = 0;
  for (size_t f = 0; f < o.folds; ++f) {
    for (size_t i = 0; i < n; ++i) used[i] = fold[i] != f;
    for (size_t c = 0; c < score.size(); ++c) score[c] = count_hits(hits, c, used);
    const size_t picked = best_of(field, score);
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
  // A best of many that gains nothing where it had no say is chance.
  if (choice.expected_gain <= 0 && choice.chosen.weights != choice.first.weights) {
    choice.notes.push_back(fmt::format(
        "the best on all rows, {}, is not chosen: without a say of the rows it is judged by, such "
        "choices gain nothing",
        choice.chosen.features));
    choice.chosen = choice.first;
  } else if (choice.expected_gain < choice.expected_error) {
    choice.notes.push_back(
        "the gain is not above its error: the choice may be no better than the first block alone");
  }
  return choice;
}

}  // namespace fungi
