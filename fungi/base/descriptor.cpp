// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/descriptor.h"

#include <algorithm>
#include <cerrno>

namespace fungi {
namespace {

// call(bytes that are done, bytes at the most) → how many it did, as the system calls tell it.
template <class Call>
bool all(size_t bytes, const Call& call) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // the system calls take less than 2 GiB
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = call(done, std::min(bytes - done, kMostAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = 0;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

bool write_all(const Descriptor& file, std::span<const std::byte> bytes) {
  return all(bytes.size(), [&](size_t done, size_t most) {
    return ::write(file.number, bytes.data() + done, most);
  });
}

bool write_all_at(const Descriptor& file, uint64_t offset, std::span<const std::byte> bytes) {
  return all(bytes.size(), [&](size_t done, size_t most) {
    return ::pwrite(file.number, bytes.data() + done, most, static_cast<off_t>(offset + done));
  });
}

bool read_all_at(const Descriptor& file, uint64_t offset, std::span<std::byte> bytes) {
  return all(bytes.size(), [&](size_t done, size_t most) {
    return ::pread(file.number, bytes.data() + done, most, static_cast<off_t>(offset + done));
  });
}

}  // namespace fungi
