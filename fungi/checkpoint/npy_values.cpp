// SPDX-License-Identifier: Apache-2.0
// Any numeric array, in either order, as f32 or 64-bit integers.
#include "fungi/checkpoint/npy_values.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Calls use(index in row-major order, start of the element) for each element.
template <class Use>
void for_each_element(const NpyHeader& header, std::span<const std::byte> data, Use use) {
  const size_t dimensions = header.shape.size();
  std::vector<size_t> steps(dimensions), at(dimensions, 0);
  size_t count = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const size_t axis = header.fortran_order ? i : dimensions - 1 - i;
    steps[axis] = count * header.item_size;
    count *= header.shape[axis];
  }
  size_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    use(i, data.data() + start);
    for (size_t axis = dimensions; axis-- > 0;) {
      start += steps[axis];
      if (++at[axis] < header.shape[axis]) break;
      start -= at[axis] * steps[axis];
      at[axis] = 0;
    }
  }
}

// Sign-extended or zero-extended, without loss, except u64 beyond the range, which the caller
// checks.
uint64_t load_integer(const NpyHeader& header, const std::byte* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, header.item_size);
  const size_t unused = 64 - 8 * header.item_size;
  return header.kind == 'i' ? static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused)
                            : bits;
}

bool is_integer(const NpyHeader& header) {
  const size_t size = header.item_size;
  return (header.kind == 'b' && size == 1) || ((header.kind == 'i' || header.kind == 'u') &&
                                               (size == 1 || size == 2 || size == 4 || size == 8));
}

}  // namespace

size_t npy_rows(const NpyHeader& header) { return header.shape.empty() ? 1 : header.shape[0]; }

size_t npy_cols(const NpyHeader& header) {
  size_t cols = 1;
  for (size_t i = 1; i < header.shape.size(); ++i) cols *= header.shape[i];
  return cols;
}

Matrix<float> npy_floats(const NpyHeader& header, std::span<const std::byte> data,
                         const std::string& place) {
  const auto type = header.type();
  const bool floats = type && is_float(*type);
  if (!floats && !is_integer(header))
    fail(fmt::format("has the type '{}'; numbers were expected", printable(header.descr)), place,
         "convert the array with .astype(numpy.float32)");
  Matrix<float> matrix(npy_rows(header), npy_cols(header));
  if (matrix.empty()) return matrix;
  if (floats) {
    gather(header.layout(), data.data(), matrix.data());
  } else {
    for_each_element(header, data, [&](size_t i, const std::byte* from) {
      const uint64_t bits = load_integer(header, from);
      matrix.data()[i] = header.kind == 'i' ? static_cast<float>(static_cast<int64_t>(bits))
                                            : static_cast<float>(bits);
    });
  }
  return matrix;
}

std::vector<int64_t> npy_integers(const NpyHeader& header, std::span<const std::byte> data,
                                  const std::string& place) {
  if (!is_integer(header))
    fail(fmt::format("has the type '{}'; integers were expected", printable(header.descr)), place,
         "convert the array with .astype(numpy.int64)");
  std::vector<int64_t> integers(npy_rows(header) * npy_cols(header));
  if (integers.empty()) return integers;
  for_each_element(header, data, [&](size_t i, const std::byte* from) {
    const uint64_t bits = load_integer(header, from);
    if (header.kind == 'u' && bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail(fmt::format("holds {}, which does not fit a signed 64-bit integer", bits), place,
           "convert the array with .astype(numpy.int64)");
    integers[i] = static_cast<int64_t>(bits);
  });
  return integers;
}

}  // namespace fungi
