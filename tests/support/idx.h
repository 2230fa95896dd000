// SPDX-License-Identifier: Apache-2.0
// Pictures in MNIST's IDX form: many samples without an image encoder.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "fungi/base/random.h"

namespace fungi::test {

inline void write_idx(const std::filesystem::path& folder, size_t n, size_t seed = 1) {
  std::filesystem::create_directories(folder);
  auto big_endian = [](size_t v) {
    return std::string{char(v >> 24), char(v >> 16), char(v >> 8), char(v)};
  };
  std::string images =
      std::string("\0\0\x08\x03", 4) + big_endian(n) + big_endian(20) + big_endian(20);
  std::string labels = std::string("\0\0\x08\x01", 4) + big_endian(n);
  for (size_t i = 0; i < n; ++i) {
    const RandomStream random(seed, "idx", i);
    for (size_t p = 0; p < 400; ++p) images += char(random.bits(p / 7) & 255);
    labels += char(i % 3);
  }
  std::ofstream(folder / "train-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(folder / "train-labels-idx1-ubyte", std::ios::binary) << labels;
}

}  // namespace fungi::test
