// SPDX-License-Identifier: Apache-2.0
// The head of a .npy file: magic, version, and a Python dict with type, order and shape. Internal
// to this room.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/checkpoint/strided.h"

namespace fungi {

struct NpyHeader {
  char kind =
      'f';  // f float, i integer, u unsigned, b bool, V raw bytes; anything else is no number
  size_t item_size = 4;  // bytes
  std::string descr;     // "<f4"
  bool fortran_order = false;
  std::vector<size_t> shape;
  size_t data_offset = 0;  // bytes from the start of the file

  // The type in our own terms; empty for unsigned integers beyond 8 bits, complex numbers, texts
  // and the like. Two raw bytes are bf16: so numpy spells a type it does not know, and so JAX's
  // checkpoints come.
  std::optional<DType> type() const;
  Strided layout() const;  // over the data; type() must be set
};

// A prefix of this length always suffices for parse_npy_header, unless the header is refused
// anyway.
inline constexpr size_t kLongestNpyHeader = size_t{1} << 16;

// start: the first bytes of the file (kLongestNpyHeader or all). total: bytes of the whole file,
// which the shape must fill exactly.
NpyHeader parse_npy_header(std::string_view start, size_t total, const std::string& place);

}  // namespace fungi
