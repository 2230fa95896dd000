// SPDX-License-Identifier: Apache-2.0
// The two sums by which a hub knows files: SHA-256 of large ones, and of small ones the name that
// git gives them, SHA-1 of their bytes behind a line with their length. Internal to the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "fungi/checkpoint/sha256.h"

namespace fungi {

class Sha1 {  // FIPS 180-4; to find damage, not enemies
 public:
  void add(std::span<const std::byte> bytes);
  std::string hex();  // of all that was added; call it last

 private:
  void mix(const std::byte* block);
  std::array<uint32_t, 5> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<std::byte, 64> rest_{};
  uint64_t total_ = 0;
};

// Whichever of the two an expected sum is, by its length.
class HubChecksum {
 public:
  HubChecksum(std::string expected, uint64_t bytes);  // of a file of so many bytes
  void add(std::span<const std::byte> bytes);
  std::string hex();  // call it last
  const std::string& expected() const { return expected_; }

 private:
  std::string expected_;
  bool git_;
  Sha1 sha1_;
  Sha256 sha256_;
};

// Of a whole file; false also where it cannot be read.
bool file_has(const std::filesystem::path& path, const std::string& checksum, uint64_t bytes);

}  // namespace fungi
