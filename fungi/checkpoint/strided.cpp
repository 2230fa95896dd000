// SPDX-License-Identifier: Apache-2.0
// Bounds of strided tensors without overflow, and the walk over them.
#include "fungi/checkpoint/strided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// An expanded tensor may be larger than its storage, but not so that a few bytes ask for all
// memory.
constexpr size_t kMostRepeated = size_t{1} << 24;

template <size_t size>
void copy_spaced(const std::byte* from, size_t stride, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * size, from + i * stride * size, size);
}

}  // namespace

void check_bounds(const Strided& tensor, size_t stored, const std::string& place) {
  if (tensor.shape.size() != tensor.strides.size())
    fail(
        fmt::format("has {} dimensions but {} strides", tensor.shape.size(), tensor.strides.size()),
        place, "the file is damaged: fetch it again");
  const size_t count = checked_count(tensor.shape, place);
  if (count == 0) return;
  std::optional<size_t> last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size() && last; ++i) {
    const auto step = checked_multiply(tensor.shape[i] - 1, tensor.strides[i]);
    last = step ? checked_add(*last, *step) : std::nullopt;
  }
  if (!last || *last >= stored)
    fail(fmt::format("shape {} at offset {} reaches beyond the {} elements that are stored",
                     shape_text(tensor.shape), tensor.offset, stored),
         place, kHostile);
  if (count > std::max(stored, kMostRepeated))
    fail(fmt::format("shape {} repeats {} stored elements too often", shape_text(tensor.shape),
                     stored),
         place, "save the tensor with .contiguous(), or leave it out");
}

bool is_contiguous(const Strided& tensor) {
  size_t expected = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void gather(const Strided& tensor, const std::byte* from, float* to) {
  size_t count = 1;
  for (size_t dimension : tensor.shape) count *= dimension;
  if (count == 0) return;
  const size_t size = size_of(tensor.type);
  from += tensor.offset * size;
  if (is_contiguous(tensor)) return to_floats(tensor.type, from, count, to);

  // Not contiguous, so there is at least one dimension: rows along the last, an odometer over the
  // others.
  const size_t last = tensor.shape.size() - 1;
  const size_t length = tensor.shape[last], stride = tensor.strides[last];
  std::vector<size_t> at(last, 0);
  std::vector<std::byte> row(stride == 1 ? 0 : length * size);
  size_t start = 0;
  for (size_t done = 0; done < count; done += length, to += length) {
    const std::byte* first = from + start * size;
    if (stride != 1) {
      if (size == 2) copy_spaced<2>(first, stride, length, row.data());
      if (size == 4) copy_spaced<4>(first, stride, length, row.data());
      if (size == 8) copy_spaced<8>(first, stride, length, row.data());
      first = row.data();
    }
    to_floats(tensor.type, first, length, to);
    for (size_t i = last; i-- > 0;) {
      start += tensor.strides[i];
      if (++at[i] < tensor.shape[i]) break;
      start -= at[i] * tensor.strides[i];
      at[i] = 0;
    }
  }
}

}  // namespace fungi
