// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), the name by which a manifest and the model hubs know a file. Uses the
// processor's SHA instructions where it has them. Internal to the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fungi {

class Sha256 {
 public:
  // portable: without the processor's own instructions, so that both ways can be compared.
  explicit Sha256(bool portable = false) : portable_(portable) {}

  void add(std::span<const std::byte> bytes);
  std::string hex();  // of all that was added; call it last

 private:
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  uint64_t total_ = 0;
  bool portable_;
};

std::string sha256(std::span<const std::byte> bytes);

}  // namespace fungi
