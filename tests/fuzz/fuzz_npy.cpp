// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a .npy array.
#include <cstdint>
#include <span>
#include <string_view>

#include "fungi/base/error.h"
#include "fungi/checkpoint/npy_header.h"
#include "fungi/checkpoint/npy_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto header =
        fungi::parse_npy_header(text.substr(0, fungi::kLongestNpyHeader), size, "fuzz");
    const auto rest = bytes.subspan(header.data_offset);
    fungi::npy_floats(header, rest, "fuzz");
    fungi::npy_integers(header, rest, "fuzz");
  } catch (const fungi::Error&) {
  }
  return 0;
}
