// SPDX-License-Identifier: Apache-2.0
// Which rows a few-shot run or a validation split takes.
#pragma once

#include <string>
#include <vector>

#include "fungi/evaluate/labels.h"

namespace fungi {

// Names of the classes by label, for Errors; without them they are numbers.
using ClassNames = std::vector<std::string>;

// The first `shots` rows of each class in the order of the data set; row numbers ascending
// (SPEC 5.2). Error if a class has fewer.
std::vector<size_t> first_per_class(Labels labels, size_t shots, const ClassNames& names = {});

struct Split {
  std::vector<size_t> first, second;
};

// scikit-learn's StratifiedShuffleSplit with train_size = first_rows and the rest as test, bit for
// bit, in its order (SPEC 5.9). Errors as there: a class of one row, fewer rows than classes on a
// side.
Split stratified_split(Labels labels, size_t first_rows, uint32_t seed = 42,
                       const ClassNames& names = {});

// The same by fraction: first_rows = floor(fraction · rows); both sides ascending, as the protocol
// uses them.
Split stratified_fraction(Labels labels, double fraction, uint32_t seed = 42,
                          const ClassNames& names = {});

}  // namespace fungi
