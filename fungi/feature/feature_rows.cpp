// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/feature_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace fungi {
namespace {

constexpr size_t kPartBytes = size_t{32} << 20;

size_t row_count(const Store& store, std::span<const size_t> rows) {
  return rows.empty() ? store.rows() : rows.size();
}

bool is_run(std::span<const size_t> rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] != rows[0] + i) return false;
  return true;
}

}  // namespace

Matrix<float> joined_rows(const Store& store, const std::vector<StoreBlock>& blocks,
                          std::span<const size_t> rows, size_t first, size_t count) {
  Matrix<float> part(count, total_width(blocks));
  const auto some = rows.empty() ? rows : rows.subspan(first, count);
  if (some.empty())
    store.read(blocks, true, first, part);
  else if (is_run(some))  // without a copy of each block
    store.read(blocks, true, some[0], part);
  else
    store.read(blocks, true, some, part);
  return part;
}

void each_joined_part(const Store& store, const std::vector<StoreBlock>& blocks,
                      const std::function<void(size_t, Matrix<float>)>& visit,
                      std::span<const size_t> rows) {
  const size_t total = row_count(store, rows), width = total_width(blocks);
  const size_t step =
      std::max<size_t>(1, kPartBytes / (sizeof(float) * std::max<size_t>(1, width)));
  for (size_t first = 0; first < total; first += step)
    visit(first, joined_rows(store, blocks, rows, first, std::min(step, total - first)));
}

std::optional<Pca> fit_pca(const Store& store, const std::vector<StoreBlock>& blocks, size_t dim,
                           Pool& pool, std::span<const size_t> rows, Comm* ranks) {
  const size_t width = total_width(blocks), total = row_count(store, rows);
  if (!Pca::applies(dim, total, width)) return std::nullopt;
  if (ranks)
    return PcaFit::on_ranks(
        total, width, dim,
        [&](size_t first, size_t count) { return joined_rows(store, blocks, rows, first, count); },
        pool, *ranks);
  PcaFit fit(width);
  each_joined_part(
      store, blocks, [&](size_t, Matrix<float> part) { fit.add(part, pool); }, rows);
  return fit.finish(dim, pool);
}

ScratchMatrix load_rows(const Store& store, const std::vector<StoreBlock>& blocks,
                        const std::optional<ColumnMap>& map, size_t memory_limit, Pool& pool,
                        std::span<const size_t> rows) {
  const size_t width = total_width(blocks);
  if (map && map->input_width() != width)
    fail(fmt::format("the PCA was fitted on {} columns, these blocks have {}", map->input_width(),
                     width),
         store.folder().string(), "use the blocks it was fitted on");
  ScratchMatrix out(row_count(store, rows), map ? map->output_width() : width, memory_limit);
  each_joined_part(
      store, blocks,
      [&](size_t first, Matrix<float> part) {
        const View<float> to = out.view().slice(first, part.rows());
        if (map)
          map->transform(part, to, pool);
        else
          std::copy_n(part.data(), part.rows() * width, to.data);
      },
      rows);
  return out;
}

}  // namespace fungi
