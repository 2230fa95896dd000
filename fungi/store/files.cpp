// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/store/text.h"

namespace fungi::store {
namespace {

[[noreturn]] void refuse(const char* what, const Path& path, int reason, const char* hint = "") {
  fail(fmt::format("{}: {}", what, std::strerror(reason)), path.string(), hint);
}

constexpr char kRoom[] = "make room or mend the permissions, then repeat: finished shards are kept";

}  // namespace

void refuse(const std::filesystem::filesystem_error& error) {
  fail("cannot be used: " + error.code().message(), error.path1().string(),
       "check the path and its permissions");
}

bool is_writable(const Path& folder) { return ::access(folder.c_str(), W_OK | X_OK) == 0; }

void require_writable(Path folder) {
  namespace fs = std::filesystem;
  while (!folder.empty() && !fs::exists(folder) && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder)) fail("expected a folder, found a file", folder.string());
  if (!is_writable(folder)) refuse("cannot be written to", folder, errno, "choose another folder");
}

bool Files::step(const char* verb, const Path& path) const {
  if (dry_run_) return false;
  if (on_step_) on_step_(fmt::format("{} {}", verb, path.string()).c_str());
  return true;
}

void Files::make_folder(const Path& path) const {
  if (std::filesystem::is_directory(path) || !step("make", path)) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) refuse("the folder cannot be made", path, error.value(), "choose another folder");
}

void Files::write(const Path& path, std::string_view bytes) const {
  if (step("write", path)) write_file_atomically(path, bytes);
}

void Files::append(const Path& path, std::string_view text) const {
  if (!step("append", path)) return;
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file.number < 0) refuse("cannot be created", path, errno, kRoom);
  const off_t size = ::lseek(file.number, 0, SEEK_END);
  if (size < 0) refuse("cannot be appended to", path, errno, kRoom);
  if (!write_all(file, std::as_bytes(std::span(text)))) {
    const int reason = errno;
    // A cut line would also be left out when the file is read; this keeps it from being glued to
    // the next one.
    if (::ftruncate(file.number, size) != 0) refuse("cannot be cut back", path, errno, kRoom);
    refuse("cannot be written", path, reason, kRoom);
  }
}

void Files::link(const Path& from, const Path& to) const {
  if (!step("link", to)) return;
  const Path temporary = to.native() + kTemporary;
  ::unlink(temporary.c_str());
  if (::link(from.c_str(), temporary.c_str()) != 0)
    return write_file_atomically(to, read_text(from));  // another disk, or one without links
  if (std::rename(temporary.c_str(), to.c_str()) != 0)
    refuse("cannot be moved in place", temporary, errno);
  ::unlink(temporary.c_str());  // two names of one file are left as they are by rename()
}

void Files::move(const Path& from, const Path& to) const {
  if (!step("move", from)) return;
  if (std::rename(from.c_str(), to.c_str()) != 0) refuse("cannot be moved in place", from, errno);
}

void Files::remove(const Path& path) const {
  if (!std::filesystem::exists(path) || !step("remove", path)) return;
  if (::unlink(path.c_str()) != 0) refuse("cannot be removed", path, errno);
}

void Files::remove_folder(const Path& path) const {
  if (!std::filesystem::exists(path) || !step("remove", path)) return;
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) refuse("cannot be removed", path, error.value());
}

Lock::Lock(const Path& file) : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_.number < 0) refuse("cannot be created", file, errno, "choose another folder");
  if (::flock(file_.number, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    fail("another run is writing to this folder", file.parent_path().string(),
         "wait for it to end, or choose another folder");
  refuse("cannot be locked", file, errno, "choose a folder on another file system");
}

}  // namespace fungi::store
