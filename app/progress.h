// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: one line, rewritten, with rate and remaining time; silent when stderr is not
// a terminal or with --quiet.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace fungi::app {

class Progress {
 public:
  Progress(std::string label, bool quiet);
  ~Progress();
  void update(size_t done, size_t total, size_t failed = 0);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool shown_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_{};
};

std::string human_seconds(double seconds);  // "4 s", "3 min 20 s", "2 h 05 min"

}  // namespace fungi::app
