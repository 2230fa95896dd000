// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: one line, rewritten, with rate and remaining time; silent when stderr is not
// a terminal or with --quiet. An interruption is acknowledged at once, also where nothing is drawn.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace fungi::app {

class Progress {
 public:
  // `stop`: once it is set, says what still has to end first, and how to end at once.
  Progress(std::string label, bool quiet, const std::atomic<bool>* stop = nullptr);
  // Of work that is mostly short and reports from 0 on: nothing is drawn in the first two seconds.
  static std::function<void(size_t, size_t)> of_long_work(const std::string& label, bool quiet);
  ~Progress();
  // Of other work from here on: a line and a clock of its own. Nothing happens if it is at it.
  // The first call starts the clock.
  void turn_to(const std::string& label, const std::string& unit = "samples");
  void update(size_t done, size_t total, size_t failed = 0);  // from any thread

 private:
  using Clock = std::chrono::steady_clock;
  void watch(const std::atomic<bool>& stop);
  void draw(std::string line);

  std::string label_, unit_ = "samples";
  const bool shown_;
  std::chrono::seconds patience_{0};
  bool drawn_ = false, over_ = false;
  size_t width_ = 0;  // of the line that stands there
  size_t done_ = 0, total_ = 0;
  Clock::time_point start_ = Clock::now(), last_{};
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread watcher_;  // a signal handler may not print, and a sample may take long
};

std::string human_seconds(double seconds);  // "4 s", "3 min 20 s", "2 h 05 min"

}  // namespace fungi::app
