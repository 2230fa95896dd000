// SPDX-License-Identifier: Apache-2.0
#include "fungi/checkpoint/npy_growing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace fungi {
namespace {

constexpr size_t kHeader = 128;  // room for any number of rows

}  // namespace

GrowingNpy::GrowingNpy(const std::filesystem::path& path, std::string descr, size_t row_bytes,
                       size_t columns, size_t rows)
    : path_(path.string()),
      descr_(std::move(descr)),
      row_bytes_(row_bytes),
      columns_(columns),
      rows_(rows),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (file_.number < 0) give_up("be opened");
  if (::flock(file_.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("another program is writing this file", path_, "wait for it to end, or write elsewhere");
  struct stat found {};
  if (::fstat(file_.number, &found) != 0) give_up("be read");
  const size_t wanted = kHeader + rows_ * row_bytes_;
  if (rows_ && size_t(found.st_size) < wanted)
    fail(fmt::format("expected at least {} bytes of an earlier run, found {}", wanted,
                     size_t(found.st_size)),
         path_, "remove the folder and begin again");
  if (::ftruncate(file_.number, off_t(rows_ ? wanted : 0)) != 0) give_up("be cut");
  const std::string head = header();
  if (!write_all_at(file_, 0, std::as_bytes(std::span(head)))) give_up("be written");
  if (::lseek(file_.number, off_t(wanted), SEEK_SET) < 0) give_up("be written");
}

void GrowingNpy::give_up(const char* what) const {
  fail(fmt::format("cannot {}: {}", what, std::generic_category().message(errno)), path_,
       "check the disk, its free space and its permissions");
}

// Padded with blanks to the same length for any number of rows.
std::string GrowingNpy::header() const {
  std::string text =
      npy_header(descr_, columns_ ? std::vector<size_t>{rows_, columns_} : std::vector{rows_});
  FUNGI_ASSERT(text.size() <= kHeader);
  text.insert(text.size() - 1, kHeader - text.size(), ' ');
  text[8] = char(kHeader - 10);
  text[9] = 0;
  return text;
}

void GrowingNpy::append(std::span<const std::byte> bytes) {
  FUNGI_ASSERT(bytes.size() % row_bytes_ == 0);
  if (!write_all(file_, bytes)) give_up("be written");
  rows_ += bytes.size() / row_bytes_;
}

void GrowingNpy::flush() {
  if (::fdatasync(file_.number) != 0) give_up("be written");
}

void GrowingNpy::finish() {
  const std::string head = header();
  if (!write_all_at(file_, 0, std::as_bytes(std::span(head)))) give_up("be written");
  flush();
}

}  // namespace fungi
