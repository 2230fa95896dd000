// SPDX-License-Identifier: Apache-2.0
// The compression function twice: plain, and with the SHA instructions of x86 (about six times
// faster).
#include "fungi/checkpoint/sha256.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace fungi {
namespace {

using State = std::array<uint32_t, 8>;

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress_plain(State& state, const std::byte* block, size_t blocks) {
  for (; blocks > 0; --blocks, block += 64) {
    uint32_t w[64];
    for (int t = 0; t < 16; ++t) {
      std::memcpy(&w[t], block + 4 * t, 4);
      w[t] = __builtin_bswap32(w[t]);
    }
    for (int t = 16; t < 64; ++t) {
      const uint32_t low = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const uint32_t high = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + low + w[t - 7] + high;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int t = 0; t < 64; ++t) {
      const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t first = h + sum1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
      const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t second = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const State change{a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += change[i];
  }
}

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}

// The instructions keep the state as the words (a b e f) and (c d g h), highest first, and do two
// rounds each.
__attribute__((target("sha,sse4.1"))) void compress_sha(State& state, const std::byte* block,
                                                        size_t blocks) {
  __m128i abef = _mm_set_epi32(int(state[0]), int(state[1]), int(state[4]), int(state[5]));
  __m128i cdgh = _mm_set_epi32(int(state[2]), int(state[3]), int(state[6]), int(state[7]));
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; blocks > 0; --blocks, block += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i & 3];
      if (i < 4) {
        now = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i);
        now = _mm_shuffle_epi8(now, swap);
      } else {
        const __m128i last = w[(i + 3) & 3];
        now = _mm_sha256msg1_epu32(now, w[(i + 1) & 3]);
        now = _mm_add_epi32(now, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
        now = _mm_sha256msg2_epu32(now, last);
      }
      const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + i);
      const __m128i sum = _mm_add_epi32(now, constants);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  alignas(16) uint32_t low[4], high[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(low), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(high), cdgh);
  state = {low[3], low[2], high[3], high[2], low[1], low[0], high[1], high[0]};
}

void compress(State& state, const std::byte* block, size_t blocks, bool portable) {
  static const bool fast = has_sha_instructions();
  if (fast && !portable) return compress_sha(state, block, blocks);
  compress_plain(state, block, blocks);
}

}  // namespace

void Sha256::add(std::span<const std::byte> bytes) {
  const size_t held = total_ % 64;
  total_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(64 - held, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + held);
    if (held + taken < 64) return;
    compress(state_, rest_.data(), 1, portable_);
    bytes = bytes.subspan(taken);
  }
  compress(state_, bytes.data(), bytes.size() / 64, portable_);
  const auto tail = bytes.subspan(bytes.size() / 64 * 64);
  std::copy(tail.begin(), tail.end(), rest_.begin());
}

std::string Sha256::hex() {
  const uint64_t bits = __builtin_bswap64(total_ * 8);
  std::array<std::byte, 72> end{std::byte{0x80}};
  const size_t zeros = (119 - total_ % 64) % 64;  // bytes of padding after the 0x80
  std::memcpy(end.data() + 1 + zeros, &bits, 8);
  add({end.data(), 1 + zeros + 8});
  std::string text;
  for (uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

}  // namespace fungi
