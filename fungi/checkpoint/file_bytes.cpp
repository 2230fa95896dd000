// SPDX-License-Identifier: Apache-2.0
// Read-only mapping of a regular file (POSIX).
#include "fungi/checkpoint/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "fungi/base/descriptor.h"
#include "fungi/base/error.h"

namespace fungi {
namespace {

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

std::shared_ptr<const FileBytes> FileBytes::map(const std::filesystem::path& path) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a pipe must not hang; it is refused just below.
  const Descriptor file{::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0)
    fail(fmt::format("cannot be opened: {}", reason()), name, "check the path and its permissions");
  struct stat status {};
  if (::fstat(file.number, &status) != 0)
    fail(fmt::format("cannot be examined: {}", reason()), name, "check the path");
  if (!S_ISREG(status.st_mode)) fail("is not a regular file", name, "give the path of a file");
  if (status.st_size == 0)
    fail("is empty", name, "fetch it again: the download or copy was interrupted");
  const size_t size = static_cast<size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (start == MAP_FAILED)
    fail(fmt::format("{} bytes cannot be mapped: {}", size, reason()), name,
         "check that it lies on an ordinary file system");
  std::string stamp =
      fmt::format("{} {}.{:09}", size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return std::shared_ptr<const FileBytes>(
      new FileBytes(name, std::move(stamp), {static_cast<const std::byte*>(start), size}, true));
}

std::shared_ptr<const FileBytes> FileBytes::borrow(std::string name,
                                                   std::span<const std::byte> bytes) {
  return std::shared_ptr<const FileBytes>(new FileBytes(std::move(name), "", bytes, false));
}

void FileBytes::release(std::span<const std::byte> part) const noexcept {
  if (!mapped_) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void FileBytes::expect_random(bool yes) const noexcept {
  void* start = const_cast<std::byte*>(bytes_.data());
  if (mapped_) ::madvise(start, bytes_.size(), yes ? MADV_RANDOM : MADV_NORMAL);
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace fungi
