// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/cka.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/feature/feature_rows.h"

namespace fungi {
namespace {

constexpr size_t kRowBlock = 1024;  // rows laid side by side at once

size_t total(const std::vector<size_t>& widths) {
  if (widths.empty()) fail("expected at least one block, found none", "blocks", "");
  return std::accumulate(widths.begin(), widths.end(), size_t{0});
}

}  // namespace

CkaStream::CkaStream(std::vector<size_t> widths, std::vector<std::string> names)
    : widths_(std::move(widths)), names_(std::move(names)), covariance_(total(widths_)) {
  for (size_t b = names_.size(); b < widths_.size(); ++b) names_.push_back(std::to_string(b));
}

void CkaStream::add(const std::vector<View<const float>>& blocks, Pool& pool) {
  if (blocks.size() != widths_.size())
    fail(fmt::format("expected {} blocks, found {}", widths_.size(), blocks.size()), "blocks", "");
  const size_t rows = blocks[0].rows;
  for (size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].rows != rows || blocks[b].cols != widths_[b])
      fail(fmt::format("expected {} x {} in block {}, found {} x {}", rows, widths_[b], names_[b],
                       blocks[b].rows, blocks[b].cols),
           "blocks", "compare features of the same rows");
  for (size_t first = 0; first < rows; first += kRowBlock) {
    const size_t count = std::min(kRowBlock, rows - first);
    Matrix<float> joined(count, covariance_.width());
    for (size_t i = 0; i < count; ++i) {
      float* to = joined.row(i);
      for (const View<const float>& block : blocks)
        to = std::copy_n(block.row(first + i), block.cols, to);
    }
    add_joined(joined, pool);
  }
}

void CkaStream::add_joined(View<const float> rows, Pool& pool) { covariance_.add(rows, pool); }

Matrix<double> CkaStream::finish(Pool& pool) {
  if (covariance_.rows() < 2)
    fail(fmt::format("expected at least two rows, found {}", covariance_.rows()), "blocks",
         "use more rows");
  const Moments moments = covariance_.finish(pool);
  const size_t count = widths_.size();
  Matrix<double> product(count, count), out(count, count);  // product: ‖XᵀY‖²
  size_t row = 0;
  for (size_t a = 0; a < count; row += widths_[a++]) {
    size_t col = 0;
    for (size_t b = 0; b <= a; col += widths_[b++]) {
      double sum = 0;
      for (size_t i = 0; i < widths_[a]; ++i)
        for (size_t j = 0; j < widths_[b]; ++j) {
          const double value = moments.scatter(row + i, col + j);
          sum += value * value;
        }
      product(a, b) = product(b, a) = sum;
    }
    if (!(product(a, a) > 0))
      fail(
          fmt::format("expected rows that differ, block {} has the same row everywhere", names_[a]),
          "blocks", "leave the block out (--features)");
  }
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b)
      out(a, b) =
          a == b ? 1 : product(a, b) / (std::sqrt(product(a, a)) * std::sqrt(product(b, b)));
  return out;
}

Matrix<double> linear_cka(const std::vector<View<const float>>& blocks, Pool& pool) {
  std::vector<size_t> widths;
  for (const View<const float>& block : blocks) widths.push_back(block.cols);
  CkaStream stream(std::move(widths));
  stream.add(blocks, pool);
  return stream.finish(pool);
}

Matrix<double> linear_cka(const Store& store, const std::vector<std::string>& blocks, Pool& pool) {
  std::vector<StoreBlock> chosen;
  std::vector<size_t> widths;
  std::vector<std::string> names;
  for (const std::string& name : blocks)
    for (const StoreBlock& block : store.select(name)) {
      chosen.push_back(block);
      widths.push_back(block.width);
      names.push_back(block.name);
    }
  CkaStream stream(std::move(widths), std::move(names));
  each_joined_part(store, chosen,
                   [&](size_t, Matrix<float> part) { stream.add_joined(part, pool); });
  return stream.finish(pool);
}

}  // namespace fungi
