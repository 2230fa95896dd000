// SPDX-License-Identifier: Apache-2.0
// The rows of a dense projection matrix, produced piece by piece where they are needed.
// Internal to this room.
#pragma once

#include <memory>

#include "fungi/projection/projection.h"

namespace fungi {

class ProjectionRows {
 public:
  virtual ~ProjectionRows() = default;

  // Entries [begin, begin + count) of a row as floats or as bfloat16; begin is a multiple of 8.
  // Every kind but `matrix` has entries that bfloat16 holds exactly, so both forms are the same
  // matrix.
  virtual void fill(size_t row, size_t begin, size_t count, float* out) const = 0;
  virtual void fill(size_t row, size_t begin, size_t count, kernel::bfloat16* out) const = 0;

  // s in y = s · R · vec(M).
  virtual double scale() const = 0;
};

std::unique_ptr<ProjectionRows> make_projection_rows(ProjectionOptions options,
                                                     size_t gradient_length);

// Bits of the counter-based sign matrix: entry j of a row is +1 where bit j mod 64 of word j / 64
// is set. `purpose` keeps different matrices of one seed apart.
void sign_words(uint64_t seed, std::string_view purpose, size_t row, size_t first_word,
                size_t count, uint64_t* words);

}  // namespace fungi
