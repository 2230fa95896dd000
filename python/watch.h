// SPDX-License-Identifier: Apache-2.0
// Work on a thread of its own while the caller's, without the interpreter's lock, looks at signals
// and shows progress. Ctrl-C, and an exception out of the progress function, stop the work as the
// library stops: what was saved stays.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "python/bind.h"

namespace fungi::python {

class Watch {
 public:
  Watch() : progress_(nb::none()) {}
  // progress(stage, done, total, failed) or None.
  explicit Watch(nb::object progress) : progress_(std::move(progress)) {}

  const std::atomic<bool>* stop() const { return &stop_; }
  // From any thread of the work, and cheap.
  void report(std::string_view stage, size_t done, size_t total, size_t failed = 0);
  // The same from a function whose exceptions end the work: throws once the work is to stop.
  void report_or_end(std::string_view stage, size_t done, size_t total);
  std::function<void(size_t, size_t)> reporter(const char* stage) {
    return [this, stage](size_t done, size_t total) { report(stage, done, total); };
  }
  std::function<void(size_t, size_t)> ending_reporter(const char* stage) {
    return [this, stage](size_t done, size_t total) { report_or_end(stage, done, total); };
  }

  // Runs it, and throws what it threw, or what stopped it.
  void run(const std::function<void()>& work);

 private:
  struct Ended {};
  struct News {
    std::string stage = {};
    size_t done = 0, total = 0, failed = 0;
  };
  void tell(std::optional<nb::python_error>& failure);  // with the lock of the interpreter

  nb::object progress_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  News news_;
  bool fresh_ = false;
};

}  // namespace fungi::python
