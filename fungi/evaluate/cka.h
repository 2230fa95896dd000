// SPDX-License-Identifier: Apache-2.0
// Linear centred kernel alignment between blocks of features: ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) of the centred
// blocks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/store/store.h"

namespace fungi {

class Comm;

// Between blocks of a store, each row of each block of length 1. Result [blocks, blocks],
// symmetric, ones on the diagonal. Errors: no blocks, fewer than two rows, NaN, a block without
// variation.
//
// The store is read in parts and may be larger than memory. With at least as many rows as columns
// (of all blocks), columns² numbers are kept. With fewer, products of rows are enough, of some rows
// at a time: beside them about five times part_bytes are taken, however many columns there are.
Matrix<double> linear_cka(const Store& store, const std::vector<std::string>& blocks, Pool& pool,
                          size_t part_bytes = size_t{64} << 20, Comm* ranks = nullptr);

}  // namespace fungi
