// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/matrix.h"

#include <sys/mman.h>

namespace fungi {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

// Large buffers ask for huge pages: hundreds of times fewer faults while they are first written,
// and far fewer misses where rows lie pages apart. A kernel without them says no, and all is as
// before.
Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool large = bytes >= 2 * kHugePage;
  const std::align_val_t alignment{large ? kHugePage : kAlignment};
  data_ = {static_cast<std::byte*>(::operator new(bytes, alignment)), Free{alignment}};
  if (large) madvise(data_.get(), bytes, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, bytes);
}

}  // namespace fungi
