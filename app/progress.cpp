// SPDX-License-Identifier: Apache-2.0
#include "app/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "app/cli.h"

namespace fungi::app {

std::string human_seconds(double seconds) {
  const auto s = static_cast<size_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

Progress::Progress(std::string label, bool quiet, const std::atomic<bool>* stop)
    : label_(std::move(label)), shown_(!quiet && is_terminal(2)) {
  if (stop && !quiet) watcher_ = std::thread([this, stop] { watch(*stop); });
}

std::function<void(size_t, size_t)> Progress::of_long_work(const std::string& label, bool quiet) {
  // Its clock starts with the first call.
  return [=, progress = std::make_shared<std::optional<Progress>>()](size_t done, size_t total) {
    if (!*progress) progress->emplace(label, quiet).patience_ = std::chrono::seconds(2);
    (*progress)->update(done, total);
  };
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  end_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  if (drawn_) say("\n");
}

void Progress::watch(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.load())
    if (end_.wait_for(lock, std::chrono::milliseconds(50), [this] { return over_; })) return;
  if (over_) return;
  if (drawn_) draw("");
  say("{}{}: finishing the {} at hand{}; Ctrl-C again stops at once\n", drawn_ ? "\r" : "", label_,
      unit_, total_ ? fmt::format(" ({} of {} {} done)", done_, total_, unit_) : "");
  drawn_ = false;
}

// Over the line before, whose rest is blanked: TERM=dumb knows no command for that. A line that the
// terminal would break could not be drawn over.
void Progress::draw(std::string line) {
  winsize window{};
  if (::ioctl(2, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    line.resize(std::min<size_t>(line.size(), window.ws_col - 1u));
  say("\r{:<{}}", line, width_);
  width_ = line.size();
  drawn_ = true;
}

void Progress::turn_to(const std::string& label, const std::string& unit) {
  const std::lock_guard lock(mutex_);
  if (label == label_ && total_ > 0) return;
  if (drawn_) say("\n");
  label_ = label, unit_ = unit;
  drawn_ = false, width_ = 0, done_ = total_ = 0;
  start_ = Clock::now(), last_ = {};
}

void Progress::update(size_t done, size_t total, size_t failed) {
  const std::lock_guard lock(mutex_);
  done_ = done, total_ = total;
  const auto now = Clock::now();
  if (!shown_ || now - start_ < patience_) return;
  if (done < total && now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count(),
               rate = seconds > 0 ? double(done) / seconds : 0;
  const std::string left = rate > 0 ? human_seconds(double(total - done) / rate) : "?";
  const bool bytes = unit_ == "bytes";
  const auto shown = [&](size_t count) {
    return bytes ? human_bytes(double(count)) : std::to_string(count);
  };
  draw(fmt::format("{} {}/{} ({:.0f} %), {}/s, {} left{}", label_, shown(done), shown(total),
                   100.0 * double(done) / double(total ? total : 1),
                   bytes ? human_bytes(rate) : fmt::format("{:.1f}", rate), left,
                   failed ? fmt::format(", {} failed", failed) : ""));
}

}  // namespace fungi::app
