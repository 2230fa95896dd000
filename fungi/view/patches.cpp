// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/patches.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "fungi/base/error.h"

namespace fungi {
namespace {

using Quad = float __attribute__((vector_size(16)));

// out [cols, rows] = transpose of in [rows, cols], by tiles of 4 x 4 in registers.
void transpose(const float* in, size_t rows, size_t cols, float* out) {
  const size_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  for (size_t i = 0; i < whole_rows; i += 4)
    for (size_t j = 0; j < whole_cols; j += 4) {
      Quad r[4];
      for (size_t k = 0; k < 4; ++k) std::memcpy(&r[k], in + (i + k) * cols + j, sizeof(Quad));
      const Quad low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
      const Quad high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
      const Quad low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
      const Quad high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
      const Quad c[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                         __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                         __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                         __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (size_t k = 0; k < 4; ++k) std::memcpy(out + (j + k) * rows + i, &c[k], sizeof(Quad));
    }
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = i < whole_rows ? whole_cols : 0; j < cols; ++j)
      out[j * rows + i] = in[i * cols + j];
}

}  // namespace

PatchGrid patch_grid(size_t size, size_t patch_count, size_t stride_scale) {
  const auto root = size_t(std::llround(std::sqrt(double(patch_count))));
  if (root == 0 || root * root != patch_count)
    fail(fmt::format("expected a perfect square, found {}", patch_count),
         "ImagePatches::patch_count", "use 1, 4, 9, 16, ...");
  if (size == 0 || size % root != 0)
    fail(fmt::format("an input of {} pixels cannot be cut into {} equal parts", size, root),
         "ImagePatches::patch_count", "choose a square whose root divides the input size");
  const size_t side = size / root, stride = stride_scale ? side / stride_scale : 0;
  if (stride == 0)
    fail(fmt::format("patches of {} pixels have no stride of 1/{}", side, stride_scale),
         "ImagePatches::stride_scale", fmt::format("choose a value from 1 to {}", side));
  return {side, stride, (size - side) / stride + 1};
}

PatchViews::PatchViews(size_t size, const PatchGrid& grid, size_t out_size,
                       const PixelTable& table)
    : size_(size),
      out_size_(out_size),
      grid_(grid),
      table_(table),
      weights_(float_weights(grid.side, out_size, Filter::bicubic)),
      turned_(3 * size * size),
      wide_(3 * size * size),
      columns_(grid.per_axis * 3 * size * out_size) {}

void PatchViews::open(const Image& image) {
  resizer_.resize(image, size_, size_, Filter::bicubic, square_);
  // Normalising before the enlargement instead of after it changes nothing: weights sum to one.
  table_.write_planes(square_, wide_.data());
  transpose(wide_.data(), 3 * size_, size_, turned_.data());
  const size_t row = 3 * size_, taps = weights_.taps;
  for (size_t column = 0; column < grid_.per_axis; ++column) {
    const float* source = turned_.data() + column * grid_.stride * row;
    for (size_t x = 0; x < out_size_; ++x)
      blend_rows(source + weights_.first[x] * row, row, weights_.weight.data() + x * taps, taps,
                 row, wide_.data() + x * row);
    transpose(wide_.data(), out_size_, row, columns_.data() + column * row * out_size_);
  }
}

void PatchViews::write(size_t index, std::span<float> out) const {
  const size_t side = out_size_;
  FUNGI_ASSERT(index < grid_.count() && out.size() == 3 * side * side);
  const size_t top = index / grid_.per_axis * grid_.stride, column = index % grid_.per_axis;
  for (size_t c = 0; c < 3; ++c) {
    const float* source = columns_.data() + ((3 * column + c) * size_ + top) * side;
    for (size_t y = 0; y < side; ++y)
      blend_rows(source + weights_.first[y] * side, side,
                 weights_.weight.data() + y * weights_.taps, weights_.taps, side,
                 out.data() + (c * side + y) * side);
  }
}

}  // namespace fungi
