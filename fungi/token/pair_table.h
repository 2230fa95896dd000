// SPDX-License-Identifier: Apache-2.0
// What two ids side by side become. Internal to this room.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fungi::token {

class PairTable {
 public:
  struct Made {
    uint32_t rank;  // the lowest goes first
    int32_t id;
  };

  explicit PairTable(size_t pairs)
      : slots_(std::bit_ceil(2 * pairs + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

  void insert(int32_t left, int32_t right, Made made) {  // over that of an equal pair
    slots_[slot_of(key_of(left, right))] = {key_of(left, right), made};
  }
  const Made* find(int32_t left, int32_t right) const {
    const Slot& slot = slots_[slot_of(key_of(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.made;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t(0);  // ids are never negative
  struct Slot {
    uint64_t key = kEmpty;
    Made made{};
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  size_t slot_of(uint64_t key) const {  // its own, or the empty one that it would take
    size_t slot = (key ^ key >> 29) * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[slot].key != key && slots_[slot].key != kEmpty)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace fungi::token
