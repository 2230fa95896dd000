// SPDX-License-Identifier: Apache-2.0
// Blocks and weights without labels, by the neighbours that two draws have in common.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/evaluate/choose_parts.h"

namespace fungi {
namespace {

using namespace choosing;

void require_draws(const Store& train, const Store& draw, const Field& field, const Field& other) {
  const std::string place = draw.folder().string();
  if (train.ids() != draw.ids())
    fail(fmt::format("its samples are not those of {}", train.folder().string()), place,
         "extract the same data again with another `seed`");
  if (field.blocks.size() != other.blocks.size() ||
      !std::equal(field.blocks.begin(), field.blocks.end(), other.blocks.begin(),
                  [](const StoreBlock& a, const StoreBlock& b) { return a.name == b.name; }))
    fail(fmt::format("its blocks are not those of {}", train.folder().string()), place,
         "extract it with the same `objectives`");
}

struct Counts {
  Matrix<uint16_t> agreed, disputed;  // [combinations, rows]
};

Counts count_neighbours(const std::vector<Part>& first, const std::vector<Part>& second,
                        const std::vector<Weights>& grid, const ChooseOptions& o, Pool& pool) {
  const size_t n = first[0].rows.rows();
  Counts counts{Matrix<uint16_t>(grid.size(), n), Matrix<uint16_t>(grid.size(), n)};
  each_part_of_rows(n, o, pool, [&](size_t begin, size_t end) {
    const std::vector<Matrix<float>> a = products_of(first, begin, end),
                                     b = products_of(second, begin, end);
    Nearest nearest(o.k);
    std::vector<float> scores;
    const auto mark = [&](std::vector<uint8_t>& marks, const auto& products, size_t i, size_t c) {
      marks.assign(n, 0);
      score_row(products, i - begin, grid[c], scores);
      for (const auto& near : nearest.find(scores, i)) marks[near.row] = 1;
    };
    std::vector<uint8_t> alone, in_a;
    for (size_t i = begin; i < end; ++i) {
      mark(alone, a, i, 0);  // the first combination is the first block alone
      for (size_t c = 0; c < grid.size(); ++c) {
        mark(in_a, a, i, c);
        score_row(b, i - begin, grid[c], scores);
        for (const auto& near : nearest.find(scores, i)) {
          counts.disputed(c, i) += !in_a[near.row];
          counts.agreed(c, i) += in_a[near.row] && !alone[near.row];
        }
      }
    }
  });
  return counts;
}

}  // namespace

StableChoice choose_stable_features(const Store& train, const Store& draw, const ChooseOptions& o,
                                    Pool& pool) {
  const Field field = field_of(train, o), other = field_of(draw, o);
  require_draws(train, draw, field, other);
  const Counts counts =
      count_neighbours(read_parts(train, field.blocks, field.rows),
                       read_parts(draw, other.blocks, field.rows), field.grid, o, pool);
  const size_t n = field.rows.size();
  const auto describe = [&](size_t c) {
    StableFeatures one{.features = name_of(field, field.grid[c]), .weights = field.grid[c]};
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
      const double agreed = double(counts.agreed(c, i)) / double(o.k),
                   disputed = double(counts.disputed(c, i)) / double(o.k);
      one.agreed += agreed / double(n), one.disputed += disputed / double(n);
      squares += (agreed - disputed) * (agreed - disputed) / double(n);
    }
    one.gain = one.agreed - one.disputed;
    one.gain_error = std::sqrt(std::max(squares - one.gain * one.gain, 0.0) / double(n));
    return one;
  };
  std::vector<double> score;
  for (size_t c = 0; c < field.grid.size(); ++c) score.push_back(describe(c).gain);
  StableChoice choice{.rows = n, .k = o.k, .chosen = describe(best_of(smoothed(field, score)))};
  for (const size_t c : best_of_each_set(field, score))
    choice.best_of_blocks.push_back(describe(c));
  const StableFeatures& all = choice.best_of_blocks.back();
  if (all.disputed == 0 && all.agreed > 0)
    choice.notes.push_back(
        "both stores have the same neighbours everywhere: are they two draws, of another `seed`?");
  if (train.rows() > n)
    choice.notes.push_back(
        fmt::format("{} of {} rows were drawn; `most_rows` says how many", n, train.rows()));
  if (choice.chosen.gain <= choice.chosen.gain_error)
    choice.notes.push_back(
        "two draws agree on too little beside the first block, which may be best alone");
  return choice;
}

}  // namespace fungi
