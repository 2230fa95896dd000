// SPDX-License-Identifier: Apache-2.0
// For one file of a test program: every allocation of the program goes through here. Requests are
// counted, the largest is noted, and what is above a limit is refused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fungi::test {

inline std::atomic<size_t> requests{0}, largest_request{0}, largest_allowed{SIZE_MAX};

inline void* allocate(size_t bytes, size_t alignment) {
  ++requests;
  size_t seen = largest_request.load();
  while (seen < bytes && !largest_request.compare_exchange_weak(seen, bytes)) {
  }
  void* memory = nullptr;  // of the exact size, so that the sanitizer sees every step beyond it
  if (bytes > largest_allowed || posix_memalign(&memory, alignment, bytes) != 0)
    throw std::bad_alloc();
  return memory;
}

}  // namespace fungi::test

// GCC 12 would inline only half of a pair and then warn that the halves do not match.
void* operator new(size_t bytes) { return fungi::test::allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return fungi::test::allocate(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
