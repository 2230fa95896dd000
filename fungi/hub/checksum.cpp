// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <vector>

namespace fungi {

void Sha1::mix(const std::byte* block) {
  std::array<uint32_t, 80> w{};
  for (size_t i = 0; i < 16; ++i)
    for (size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | uint32_t(block[4 * i + b]);
  for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (size_t i = 0; i < 80; ++i) {
    uint32_t f = b ^ c ^ d, k = 0xca62c1d6;
    if (i < 20)
      f = (b & c) | (~b & d), k = 0x5a827999;
    else if (i < 40)
      k = 0x6ed9eba1;
    else if (i < 60)
      f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  const uint32_t more[5] = {a, b, c, d, e};
  for (size_t i = 0; i < 5; ++i) state_[i] += more[i];
}

void Sha1::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t held = total_ % 64, taken = std::min(bytes.size(), 64 - held);
    std::memcpy(rest_.data() + held, bytes.data(), taken);
    total_ += taken;
    bytes = bytes.subspan(taken);
    if (held + taken == 64) mix(rest_.data());
  }
}

std::string Sha1::hex() {
  const uint64_t bits = total_ * 8;
  const std::byte one{0x80}, zero{0};
  add({&one, 1});
  while (total_ % 64 != 56) add({&zero, 1});
  std::array<std::byte, 8> length{};
  for (size_t i = 0; i < 8; ++i) length[i] = std::byte(bits >> (56 - 8 * i));
  add(length);
  std::string text;
  for (const uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

HubChecksum::HubChecksum(std::string expected, uint64_t bytes)
    : expected_(std::move(expected)), git_(expected_.size() == 40) {
  if (!git_) return;
  std::string head = fmt::format("blob {}", bytes);
  head.push_back('\0');
  sha1_.add(std::as_bytes(std::span(head)));
}

void HubChecksum::add(std::span<const std::byte> bytes) {
  git_ ? sha1_.add(bytes) : sha256_.add(bytes);
}

std::string HubChecksum::hex() { return git_ ? sha1_.hex() : sha256_.hex(); }

bool file_has(const std::filesystem::path& path, const std::string& checksum, uint64_t bytes) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) ||
      std::filesystem::file_size(path, none) != bytes)
    return false;
  std::ifstream file(path, std::ios::binary);
  HubChecksum sum(checksum, bytes);
  std::vector<char> part(size_t{1} << 20);
  while (file.read(part.data(), std::ssize(part)) || file.gcount() > 0)
    sum.add(std::as_bytes(std::span(part.data(), size_t(file.gcount()))));
  return file.eof() && sum.hex() == checksum;
}

}  // namespace fungi
