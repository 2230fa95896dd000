// SPDX-License-Identifier: Apache-2.0
// Pieces by their bytes: all of them that a text begins with are found in one walk along it.
// Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fungi::token {

class Trie {
 public:
  static constexpr uint32_t kRoot = 0, kNowhere = ~uint32_t(0);

  void insert(std::string_view key, int32_t value);  // from 0 on; over the one of an equal key

  uint32_t step(uint32_t node, char byte) const {
    const uint64_t key = key_of(node, byte);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      const uint64_t found = slots_[slot];
      if (found >> kNodeBits == key) return uint32_t(found & kNodeMask);
      if (found == kEmpty) return kNowhere;
    }
  }
  uint32_t walk(uint32_t node, std::string_view bytes) const;
  int32_t value(uint32_t node) const { return values_[node]; }  // -1: no key ends here
  int32_t find(std::string_view key) const;                     // -1: none
  bool empty() const { return values_.size() == 1; }

  // The longest key at the beginning of `text`; of length 0 where there is none.
  struct Match {
    size_t length = 0;
    int32_t value = -1;
  };
  Match longest(std::string_view text) const;

 private:
  // An edge is one number: the node it leaves, its byte, the node it leads to.
  static constexpr unsigned kNodeBits = 28;
  static constexpr uint64_t kNodeMask = (uint64_t(1) << kNodeBits) - 1, kEmpty = ~uint64_t(0);
  static uint64_t key_of(uint32_t node, char byte) { return uint64_t(node) << 8 | uint8_t(byte); }
  size_t slot_of(uint64_t key) const { return key * 0x9E3779B97F4A7C15 >> shift_; }
  void put(uint64_t edge);
  void grow();

  std::vector<uint64_t> slots_ = std::vector<uint64_t>(16, kEmpty);
  unsigned shift_ = 60;  // 64 - log2(slots)
  std::vector<int32_t> values_{-1};
};

}  // namespace fungi::token
