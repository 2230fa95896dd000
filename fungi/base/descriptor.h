// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed in the end, and all of what is to be read or written (POSIX).
// Internal to the library.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace fungi {

struct Descriptor {
  int number = -1;  // negative: none
  Descriptor() = default;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(Descriptor&& other) noexcept : number(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  int release() { return std::exchange(number, -1); }  // to whoever closes it
};

// Signals interrupt system calls, and one call takes only so much: these go on. False: errno says
// why, and of reading is 0 where the file ends too early.
bool write_all(const Descriptor& file, std::span<const std::byte> bytes);
bool write_all_at(const Descriptor& file, uint64_t offset, std::span<const std::byte> bytes);
bool read_all_at(const Descriptor& file, uint64_t offset, std::span<std::byte> bytes);

}  // namespace fungi
