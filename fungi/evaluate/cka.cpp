// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/cka.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/pca/covariance.h"
#include "fungi/pca/eigen_kernel.h"

namespace fungi {
namespace {

// On ranks, where each reads its share of the rows: at rank 0.
Moments moments_of_columns(const Store& store, const std::vector<StoreBlock>& blocks, Pool& pool,
                           Comm* ranks) {
  const size_t width = total_width(blocks);
  if (ranks)
    return moments_on_ranks(
        store.rows(), width,
        [&](size_t first, size_t count) { return joined_rows(store, blocks, {}, first, count); },
        pool, *ranks);
  Covariance covariance(width);
  each_joined_part(store, blocks, [&](size_t, Matrix<float> part) { covariance.add(part, pool); });
  return covariance.finish(pool);
}

// ‖XᵀY‖² for every two blocks, below the diagonal and on it: their part of the squared scatter.
Matrix<double> products_of_columns(const Store& store, const std::vector<StoreBlock>& blocks,
                                   Pool& pool, Comm* ranks) {
  Matrix<double> product(blocks.size(), blocks.size());
  const Moments moments = moments_of_columns(store, blocks, pool, ranks);
  if (ranks && !ranks->first()) return product;
  size_t row = 0;
  for (size_t a = 0; a < blocks.size(); row += blocks[a++].width) {
    size_t col = 0;
    for (size_t b = 0; b <= a; col += blocks[b++].width)
      for (size_t i = 0; i < blocks[a].width; ++i)
        for (size_t j = 0; j < blocks[b].width; ++j) {
          const double value = moments.scatter(row + i, col + j);
          product(a, b) += value * value;
        }
  }
  return product;
}

// What each rank found, at rank 0; elsewhere nothing.
std::vector<std::vector<double>> at_first(std::vector<double> own, Comm* ranks) {
  std::vector<std::vector<double>> all;
  if (!ranks) {
    all.push_back(std::move(own));
    return all;
  }
  ByteWriter out;
  out.numbers(own);
  for (const std::string& bytes : ranks->gather(out.take()))
    all.push_back(ByteReader(bytes).numbers<double>());
  return all;
}

std::vector<double> means_of(const Store& store, const std::vector<StoreBlock>& blocks) {
  std::vector<double> mean(total_width(blocks), 0.0);
  each_joined_part(store, blocks, [&](size_t, Matrix<float> part) {
    for (size_t i = 0; i < part.rows(); ++i)
      for (size_t c = 0; c < mean.size(); ++c) mean[c] += double(part(i, c));
  });
  for (double& value : mean) value /= double(store.rows());
  return mean;
}

// The same from products of rows, since ‖XᵀY‖² = ⟨XXᵀ, YYᵀ⟩: for some rows and some others at a
// time, those of every block, which need not be kept. In f64, as PCA has them: there are few rows.
// Ranks take parts of the rows in turns, and rank 0 adds up what each found, in the order of parts.
Matrix<double> products_of_rows(const Store& store, const std::vector<StoreBlock>& blocks,
                                size_t part_bytes, Pool& pool, Comm* ranks) {
  constexpr size_t kMostRows = 1024, kGrain = 32;  // 8 MB of products for a block
  const std::vector<double> mean = means_of(store, blocks);
  const size_t width = mean.size(), count = blocks.size();
  const size_t step = std::clamp<size_t>(part_bytes / (sizeof(float) * width), 1, kMostRows);
  std::vector<size_t> starts(count, 0);  // the first column of each block
  for (size_t b = 1; b < count; ++b) starts[b] = starts[b - 1] + blocks[b - 1].width;
  const EigenKernel& kernel = eigen_kernel(best_isa());
  const auto read = [&](size_t first) {
    Matrix<float> part(std::min(step, store.rows() - first), width);
    store.read(blocks, true, first, part);
    return part;
  };
  Matrix<double> product(count, count);
  std::vector<double> parts;  // of own rows: for each two parts, a number for every two blocks
  size_t turn = 0;
  for (size_t first = 0; first < store.rows(); first += step, ++turn) {
    if (ranks && turn % ranks->size() != ranks->rank()) continue;
    Matrix<double> rows;  // centred
    {
      const Matrix<float> part = read(first);
      rows = Matrix<double>(part.rows(), width);
      pool.parallel_for(part.rows(), 1, [&](size_t i, size_t, unsigned) {
        for (size_t c = 0; c < width; ++c) rows(i, c) = double(part(i, c)) - mean[c];
      });
    }
    for (size_t other = 0; other <= first; other += step) {
      Matrix<double> columns;  // of the other rows
      {
        const Matrix<float> part = read(other);
        columns = Matrix<double>(width, part.rows());
        pool.parallel_for(width, kGrain, [&](size_t begin, size_t end, unsigned) {
          for (size_t i = 0; i < part.rows(); ++i)
            for (size_t c = begin; c < end; ++c) columns(c, i) = double(part(i, c)) - mean[c];
        });
      }
      const size_t n = columns.cols(), tasks = (rows.rows() + kGrain - 1) / kGrain;
      std::vector<Matrix<double>> grams;  // −XXᵀ of each block
      for (size_t b = 0; b < count; ++b) grams.emplace_back(rows.rows(), n);
      pool.parallel_for(count * tasks, 1, [&](size_t task, size_t, unsigned) {
        const size_t b = task / tasks, i = task % tasks * kGrain;
        kernel.subtract_product(std::min(kGrain, rows.rows() - i), n, blocks[b].width,
                                rows.row(i) + starts[b], width, columns.row(starts[b]), n,
                                grams[b].row(i), n);
      });
      const size_t at = parts.size();
      parts.resize(at + count * count);
      const double times = other < first ? 2 : 1;  // these rows and those, those and these
      pool.parallel_for(count, 1, [&](size_t a, size_t, unsigned) {
        for (size_t b = 0; b <= a; ++b) {
          double sum = 0;
          for (size_t i = 0; i < rows.rows(); ++i)
            sum += kernel.dot(n, grams[a].row(i), grams[b].row(i));
          parts[at + a * count + b] = times * sum;
        }
      });
    }
  }
  std::vector<std::vector<double>> all = at_first(std::move(parts), ranks);
  std::vector<size_t> taken(all.size());
  turn = 0;
  for (size_t first = 0; first < store.rows() && !all.empty(); first += step, ++turn)
    for (size_t other = 0; other <= first; other += step) {
      const size_t rank = turn % all.size();
      for (size_t i = 0; i < count * count; ++i) product.data()[i] += all[rank][taken[rank]++];
    }
  return product;
}

}  // namespace

Matrix<double> linear_cka(const Store& store, const std::vector<std::string>& blocks, Pool& pool,
                          size_t part_bytes, Comm* ranks) {
  const std::string place = store.folder().string();
  std::vector<StoreBlock> chosen;
  for (const std::string& name : blocks)
    for (const StoreBlock& block : store.select(name)) chosen.push_back(block);
  if (chosen.empty()) fail("expected at least one block, found none", place, "name a block");
  if (store.rows() < 2)
    fail(fmt::format("expected at least two rows, found {}", store.rows()), place, "use more rows");
  Matrix<double> product = store.rows() < total_width(chosen)
                               ? products_of_rows(store, chosen, part_bytes, pool, ranks)
                               : products_of_columns(store, chosen, pool, ranks);
  if (ranks) {
    ByteWriter out;
    out.matrix<double>(product);
    const std::string bytes = ranks->broadcast(out.take());
    product = ByteReader(bytes).matrix<double>();
  }
  Matrix<double> out(chosen.size(), chosen.size());
  for (size_t a = 0; a < chosen.size(); ++a) {
    if (!(product(a, a) > 0))
      fail(fmt::format("expected rows that differ, block {} has the same row everywhere",
                       chosen[a].name),
           place, "leave the block out (`features`)");
    out(a, a) = 1;
    for (size_t b = 0; b < a; ++b)
      out(a, b) = out(b, a) = product(a, b) / (std::sqrt(product(a, a)) * std::sqrt(product(b, b)));
  }
  return out;
}

}  // namespace fungi
