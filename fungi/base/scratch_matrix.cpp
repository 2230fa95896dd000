// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/scratch_matrix.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"

namespace fungi {

size_t default_memory_limit() { return cpu().memory_bytes / 4; }

namespace {

// Where std::filesystem::temp_directory_path looks, too; but that does not say which name is wrong.
std::string scratch_folder() {
  for (const char* variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    const char* folder = std::getenv(variable);
    if (!folder || !*folder) continue;
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
      fail(fmt::format("rows that do not fit the memory set aside need a scratch file: expected a "
                       "folder in {}, found '{}', which is none",
                       variable, folder),
           variable, "make that folder, set TMPDIR to another one, or allow more memory");
    return folder;
  }
  return "/tmp";
}

}  // namespace

struct ScratchMatrix::Mapping {
  void* data = nullptr;
  size_t bytes = 0;

  explicit Mapping(size_t wanted) : bytes(wanted) {
    std::string name = scratch_folder() + "/fungi-rows-XXXXXX";
    const auto give_up = [&](int reason) {
      fail(fmt::format(
               "{:.1f} GB of rows do not fit the memory set aside and need a scratch file: {}",
               double(bytes) / 1e9, std::generic_category().message(reason)),
           name, "free space there, set TMPDIR to another folder, or allow more memory");
    };
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) give_up(errno);
    unlink(name.c_str());
    // Reserved now: a full disk is an Error here instead of a signal at some later store.
    const int reserved = posix_fallocate(file, 0, off_t(bytes));
    if (reserved == 0) data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int reason = reserved ? reserved : errno;
    close(file);
    if (reserved != 0 || data == MAP_FAILED) give_up(reason);
  }
  ~Mapping() { munmap(data, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

ScratchMatrix::ScratchMatrix(size_t rows, size_t cols, size_t memory_limit) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(rows, cols, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(float), &bytes))
    throw std::bad_alloc();  // as Matrix does
  if (bytes <= memory_limit) {
    memory_ = Matrix<float>(rows, cols);
    view_ = memory_;
    return;
  }
  mapping_ = std::make_shared<Mapping>(bytes);
  view_ = {static_cast<float*>(mapping_->data), rows, cols};
}

}  // namespace fungi
