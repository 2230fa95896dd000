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

// Numbers of neighbours around k: which of two combinations is right more often at k alone hangs on
// a few votes, and the mean over all of these less so.
std::vector<size_t> vote_counts(size_t k, size_t rows) {
  std::vector<size_t> counts;
  for (const size_t count : {(k + 1) / 2, (3 * k + 2) / 4, k, 3 * k / 2})
    counts.push_back(std::clamp<size_t>(count, 1, rows - 1));
  return counts;
}

// Of each combination (row) and sample (column): whether its k nearest vote for its class; of equal
// votes the smallest class wins. And with how many of vote_counts() they do.
struct Hits {
  Matrix<uint8_t> at_k, around;
};

Hits hits_of(const std::vector<Part>& parts, const std::vector<Weights>& grid,
             const Classes& classes, const ChooseOptions& o, Pool& pool) {
  const size_t n = classes.index.size();
  const std::vector<size_t> counts = vote_counts(o.k, n);
  Hits hits{Matrix<uint8_t>(grid.size(), n), Matrix<uint8_t>(grid.size(), n)};
  each_part_of_rows(n, o, pool, [&](size_t begin, size_t end) {
    const std::vector<Matrix<float>> products = products_of(parts, begin, end);
    Nearest nearest(counts.back());
    std::vector<float> scores;
    std::vector<uint32_t> votes(classes.count());
    for (size_t i = begin; i < end; ++i)
      for (size_t c = 0; c < grid.size(); ++c) {
        score_row(products, i - begin, grid[c], scores);
        std::fill(votes.begin(), votes.end(), 0);
        size_t voted = 0;
        for (const auto& near : nearest.find_in_order(scores, i)) {
          ++votes[classes.index[near.row]], ++voted;
          const auto times = std::count(counts.begin(), counts.end(), voted);
          if (times == 0) continue;
          const auto most = std::max_element(votes.begin(), votes.end());
          const bool right = size_t(most - votes.begin()) == classes.index[i];
          hits.around(c, i) += uint8_t(right * times);
          if (voted == o.k) hits.at_k(c, i) = right;
        }
      }
  });
  return hits;
}

// Of each combination the mean over the used rows, less what it has to gain to be taken: a share of
// the standard error for each step away from equal weights. Few rows tell combinations apart by
// chance, and equal weights are what is known to help on other data.
std::vector<double> scores_of(const Field& field, const Hits& hits,
                              const std::vector<uint8_t>& used) {
  constexpr double kShare = 0.1;
  const size_t combinations = field.grid.size(), equal = nearest_to_equal(field);
  const double rows = double(std::count(used.begin(), used.end(), uint8_t{1}));
  std::vector<double> score(combinations), errors;
  for (size_t c = 0; c < combinations; ++c) {
    double difference = 0, squares = 0;
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      score[c] += hits.around(c, i) / (4.0 * rows);
      const double d = (double(hits.around(c, i)) - double(hits.around(equal, i))) / 4;
      difference += d / rows, squares += d * d / rows;
    }
    if (c != equal)
      errors.push_back(std::sqrt(std::max(squares - difference * difference, 0.0) / rows));
  }
  const auto middle = errors.begin() + ptrdiff_t(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  std::vector<double> smooth = smoothed(field, score);
  for (size_t c = 0; c < combinations; ++c)
    smooth[c] -= kShare * *middle * steps_between(field, c, equal);
  return smooth;
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
  const Hits found =
      hits_of(read_parts(train, field.blocks, field.rows), field.grid, classes, o, pool);
  const Matrix<uint8_t>& hits = found.at_k;

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
  choice.first = describe(0);
  choice.chosen = describe(best_of(scores_of(field, found, used)));
  std::vector<double> accuracy;
  for (size_t c = 0; c < field.grid.size(); ++c) accuracy.push_back(describe(c).accuracy);
  for (size_t c = 0; c < field.grid.size(); ++c)
    if (std::all_of(field.grid[c].begin(), field.grid[c].end(), [](double w) { return w == 1; }))
      choice.equal = describe(c);
  for (const size_t c : best_of_each_set(field, accuracy))
    choice.best_of_blocks.push_back(describe(c));

  // What such a choice is worth: made without a fold, scored on it.
  const std::vector<size_t> fold = folds_of(classes, o);
  double sum = 0, squares = 0;
  for (size_t f = 0; f < o.folds; ++f) {
    for (size_t i = 0; i < n; ++i) used[i] = fold[i] != f;
    const size_t picked = best_of(scores_of(field, found, used));
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
