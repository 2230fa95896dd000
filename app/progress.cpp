// SPDX-License-Identifier: Apache-2.0
#include "app/progress.h"

#include <fmt/format.h>

#include <utility>

#include "app/cli.h"

namespace fungi::app {

std::string human_seconds(double seconds) {
  const auto s = static_cast<size_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), shown_(!quiet && is_terminal(2)) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\n");
}

void Progress::update(size_t done, size_t total, size_t failed) {
  const auto now = Clock::now();
  if (!shown_ || (done < total && now - last_ < std::chrono::milliseconds(200))) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count(),
               rate = seconds > 0 ? double(done) / seconds : 0;
  const std::string left = rate > 0 ? human_seconds(double(total - done) / rate) : "?";
  fmt::print(stderr, "\r{} {}/{} ({:.0f} %), {:.1f}/s, {} left{}\033[K", label_, done, total,
             100.0 * double(done) / double(total ? total : 1), rate, left,
             failed ? fmt::format(", {} failed", failed) : "");
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace fungi::app
