// SPDX-License-Identifier: Apache-2.0
// The bytes of one file, mapped read-only. Every reader of this room starts here. Const and safe to
// share. A file must not be cut short by somebody else while it is mapped; writers that rename into
// place never do that. Internal to the library.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fungi {

class FileBytes {
 public:
  static std::shared_ptr<const FileBytes> map(const std::filesystem::path& path);
  // The same face for bytes that lie in memory already; they must outlive the result.
  static std::shared_ptr<const FileBytes> borrow(std::string name,
                                                 std::span<const std::byte> bytes);

  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  const std::string& path() const noexcept { return path_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // Size and time of the last change of the file when it was mapped; empty of borrowed bytes. (Its
  // number may change by itself where the file system is a program or on another machine.)
  const std::string& stamp() const noexcept { return stamp_; }
  // Says that `part` was read and will hardly be read again: its pages leave this process's memory
  // (a later read brings them back).
  void release(std::span<const std::byte> part) const noexcept;
  // Whether parts here and there will be read, so that nothing around them need be brought along.
  void expect_random(bool yes) const noexcept;
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  FileBytes(std::string path, std::string stamp, std::span<const std::byte> bytes, bool mapped)
      : path_(std::move(path)), stamp_(std::move(stamp)), bytes_(bytes), mapped_(mapped) {}

  std::string path_, stamp_;
  std::span<const std::byte> bytes_;
  bool mapped_;
};

}  // namespace fungi
