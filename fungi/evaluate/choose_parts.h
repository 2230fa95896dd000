// SPDX-License-Identifier: Apache-2.0
// What both ways to choose blocks and weights share: the grid of weights, the rows that take part,
// the products of each block, and which combination of a score per combination is the best.
// Internal to this room.
#pragma once

#include <mutex>

#include "fungi/evaluate/choose.h"
#include "fungi/kernel/kernel.h"

namespace fungi::choosing {

// One weight per block, the first one's always 1.
using Weights = std::vector<double>;

// A store's blocks, all combinations of their weights, and its rows that take part, ascending.
// Errors: fewer than two blocks, impossible weights, too many combinations, too few rows.
struct Field {
  std::vector<StoreBlock> blocks;
  std::vector<Weights> grid;
  std::vector<size_t> rows;
  bool weighted = false;  // some block was named with a weight
};
Field field_of(const Store& store, const ChooseOptions& options);
std::string name_of(const Field& field, const Weights& weights);

// A block of the rows, each of length 1, ready for products.
struct Part {
  Matrix<float> rows;
  kernel::PackedMatrix packed;
  std::vector<float> half_square;  // of each row: 0.5, or 0 of a row that is 0
};
std::vector<Part> read_parts(const Store& store, const std::vector<StoreBlock>& blocks,
                             const std::vector<size_t>& rows);

// How near all rows are to each of rows begin .. end, block by block: x·y - |y|²/2.
std::vector<Matrix<float>> products_of(const std::vector<Part>& parts, size_t begin, size_t end);
// The same of one of them, under all blocks with their weights: larger is nearer.
void score_row(const std::vector<Matrix<float>>& products, size_t row, const Weights& weights,
               std::vector<float>& scores);

// The k nearest of a row but itself, in no order. Rows equally near: the one that comes first.
class Nearest {
 public:
  explicit Nearest(size_t k) : k_(k) {}
  struct Near {
    float score;
    uint32_t row;
  };
  const std::vector<Near>& find(const std::vector<float>& scores, size_t self);
  // The same, the nearest first.
  const std::vector<Near>& find_in_order(const std::vector<float>& scores, size_t self);

 private:
  size_t k_;
  std::vector<Near> nearest_;
};

// Calls visit(begin, end) for all rows, some at a time on several threads, and reports how many are
// done.
void each_part_of_rows(size_t rows, const ChooseOptions& options, Pool& pool,
                       const std::function<void(size_t begin, size_t end)>& visit);

// Of a score per combination of `field.grid` the mean with those of neighbouring weights.
std::vector<double> smoothed(const Field& field, const std::vector<double>& score);
// The best; of equal ones the first, whose weights are smaller, so that what does not help is left
// out.
size_t best_of(const std::vector<double>& score);
// The combination whose weights are all 1, or the nearest to it.
size_t nearest_to_equal(const Field& field);
// How many times weights would be doubled or halved from one to the other, of all blocks together;
// 0 counts as half the smallest weight.
double steps_between(const Field& field, size_t a, size_t b);
// For each set of blocks, fewer first, the combination with the best score.
std::vector<size_t> best_of_each_set(const Field& field, const std::vector<double>& score);

}  // namespace fungi::choosing
