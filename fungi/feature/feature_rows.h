// SPDX-License-Identifier: Apache-2.0
// Rows of a store made ready for search and evaluation: the chosen blocks, each of length 1, side
// by side (SPEC 1.6), and shrunk where that is wanted (column_map.h). They stream through a
// buffer of some megabytes, so a store may be larger than memory. Internal to the library.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fungi/base/scratch_matrix.h"
#include "fungi/feature/column_map.h"
#include "fungi/store/store.h"

namespace fungi {

class Comm;

// The joined blocks in parts: visit(first, rows), in order. Of the given rows, or of all if none
// are given.
void each_joined_part(const Store& store, const std::vector<StoreBlock>& blocks,
                      const std::function<void(size_t first, Matrix<float> part)>& visit,
                      std::span<const size_t> rows = {});

// Some of the given rows (none given: all): number first, first + 1, ... of them.
Matrix<float> joined_rows(const Store& store, const std::vector<StoreBlock>& blocks,
                          std::span<const size_t> rows, size_t first, size_t count);

// Fitted on the given rows of the store (none given: all), when Pca::applies says so. With
// ranks collective: each reads a share of the rows.
std::optional<Pca> fit_pca(const Store& store, const std::vector<StoreBlock>& blocks, size_t dim,
                           Pool& pool, std::span<const size_t> rows = {}, Comm* ranks = nullptr);

// The given rows of the store (none given: all), through the map if there is one.
ScratchMatrix load_rows(const Store& store, const std::vector<StoreBlock>& blocks,
                        const std::optional<ColumnMap>& map, size_t memory_limit, Pool& pool,
                        std::span<const size_t> rows = {});

}  // namespace fungi
