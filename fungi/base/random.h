// SPDX-License-Identifier: Apache-2.0
// Two sources of randomness, both without hidden state:
//  * RandomStream(seed, purpose, sample).bits(index): counter-based, so order, batch, thread and
//  rank cannot matter;
//  * TorchRandom: the 32-bit Mersenne Twister as torch's CPU generator uses it, to repeat the
//  references (SPEC 7.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace fungi {

// FNV-1a; also the project's checksum for small state.
constexpr uint64_t fnv1a64(std::string_view text, uint64_t hash = 0xcbf29ce484222325ull) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

constexpr uint64_t mix64(uint64_t x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// One stream of the counter-based generator. Copy it freely: it holds a key, not a position.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, std::string_view purpose, uint64_t sample = 0)
      : key_(mix64(mix64(seed ^ fnv1a64(purpose)) + sample)) {}
  constexpr uint64_t bits(uint64_t index) const { return mix64(key_ ^ mix64(index)); }
  constexpr double uniform(uint64_t index) const {
    return double(bits(index) >> 11) * 0x1p-53;
  }                                     // [0,1)
  double normal(uint64_t index) const;  // N(0,1)

 private:
  uint64_t key_;
};

// torch's CPU generator: float32 uniforms of 24 bits, integers by modulus, permutations as
// torch.randperm.
class TorchRandom {
 public:
  explicit TorchRandom(uint32_t seed) : engine_(seed) {}
  uint32_t draw() { return engine_(); }
  float uniform() { return float(draw() & 0xFFFFFFu) * 0x1p-24f; }
  float uniform(float low, float high) { return uniform() * (high - low) + low; }
  uint32_t integer(uint32_t bound) { return draw() % bound; }
  std::vector<uint32_t> permutation(uint32_t n);

 private:
  std::mt19937 engine_;
};

}  // namespace fungi
