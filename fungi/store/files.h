// SPDX-License-Identifier: Apache-2.0
// Every change that the store makes on disk goes through here: one place that announces each step
// (tests stop the program there) and that says what the system refused. Internal to the store.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "fungi/base/descriptor.h"

namespace fungi::store {

using Path = std::filesystem::path;

class Files {
 public:
  explicit Files(std::function<void(const char*)> on_step = {}, bool dry_run = false)
      : on_step_(std::move(on_step)), dry_run_(dry_run) {}

  void make_folder(const Path& path) const;
  void write(const Path& path, std::string_view bytes) const;  // temporary name, then rename
  void append(const Path& path, std::string_view text) const;  // all of it, or the file as it was
  // A second name for the same bytes where the file system gives it (nothing of a store is changed
  // in place), else a copy; over what is there.
  void link(const Path& from, const Path& to) const;
  void move(const Path& from, const Path& to) const;           // over what is there
  void remove(const Path& path) const;                         // a file, if it is there
  void remove_folder(const Path& path) const;  // with all that is in it, if it is there

 private:
  bool step(const char* verb, const Path& path) const;  // false: dry run, change nothing

  std::function<void(const char*)> on_step_;
  bool dry_run_;
};

// Runs `action`; what std::filesystem throws (a folder that may not be listed, a name that is too
// long) becomes an Error.
[[noreturn]] void refuse(const std::filesystem::filesystem_error& error);
template <class Action>
auto guarded(const Action& action) {
  try {
    return action();
  } catch (const std::filesystem::filesystem_error& error) {
    refuse(error);
  }
}

// Whether the system lets files be made in a folder that is there. require_writable() also takes
// one that is not there yet, and throws the reason.
bool is_writable(const Path& folder);
void require_writable(Path folder);

// What write() calls a file before the rename.
inline constexpr char kTemporary[] = ".tmp";

// Held by one writer per folder; Error when somebody else holds it. Released by the system when the
// process dies.
class Lock {
 public:
  Lock() = default;
  explicit Lock(const Path& file);

 private:
  Descriptor file_;
};

}  // namespace fungi::store
