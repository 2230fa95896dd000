// SPDX-License-Identifier: Apache-2.0
// Temporary file, fsync, rename (POSIX).
#include "fungi/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "fungi/base/error.h"

namespace fungi {

std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // the system's own limit
  std::error_code none;
  for (int links = 0; std::filesystem::is_symlink(path, none); ++links) {
    if (links == kMostLinks)
      fail("symbolic links lead in a circle", path.string(), "write to a file");
    path = path.parent_path() / std::filesystem::read_symlink(path, none);
  }
  return path;
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : target_(path.string()), name_(target_ + ".tmp") {
  // A rename would replace a device or a pipe by a file, and ends in an error on a folder.
  std::error_code unknown;
  const auto there = std::filesystem::status(path, unknown).type();
  using Type = std::filesystem::file_type;
  if (there == Type::directory)
    fail("expected the name of a file, found a folder", target_, "name a file in it");
  if (there == Type::block || there == Type::character || there == Type::fifo ||
      there == Type::socket)
    fail("expected a file, found a device or pipe", target_, "write to a file");
  file_ = Descriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file_.number < 0) give_up("be created");
  // Two writers of one name would mix their bytes. (Where files cannot be locked there is no
  // check.)
  struct stat own {
  }, named{};
  const bool locked = ::flock(file_.number, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  if (!locked || ::fstat(file_.number, &own) != 0 || ::stat(name_.c_str(), &named) != 0 ||
      own.st_ino != named.st_ino || own.st_dev != named.st_dev)
    fail("another program is writing this file", target_,  // which is the other one's: it stays
         "wait for it to end, or write to another");
  if (::ftruncate(file_.number, 0) != 0) give_up("be emptied");
}

AtomicFile::~AtomicFile() {
  if (!kept_) ::unlink(name_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_, bytes)) give_up("be written");
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  if (!write_all_at(file_, offset, bytes)) give_up("be written");
}

const std::string& AtomicFile::hand_over() {
  ::flock(file_.number, LOCK_UN);
  return name_;
}

void AtomicFile::finish() {
  if (::fsync(file_.number) != 0) give_up("be flushed");
  if (::close(file_.release()) != 0) give_up("be closed");
  if (std::rename(name_.c_str(), target_.c_str()) != 0) give_up("be renamed into place");
  kept_ = true;
}

void AtomicFile::give_up(const char* what) const {
  fail(fmt::format("cannot {}: {}", what, std::generic_category().message(errno)), target_,
       "check the folder, its permissions and the free space");
}

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  AtomicFile file(path);
  for (const auto part : parts) file.write(part);
  file.finish();
}

void write_file_atomically(const std::filesystem::path& path,
                           std::initializer_list<std::span<const std::byte>> parts) {
  write_file_atomically(path, std::span(parts.begin(), parts.size()));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, {std::as_bytes(std::span(text))});
}

}  // namespace fungi
