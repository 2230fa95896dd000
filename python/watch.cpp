// SPDX-License-Identifier: Apache-2.0
#include "python/watch.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <thread>

namespace fungi::python {

void Watch::report(std::string_view stage, size_t done, size_t total, size_t failed) {
  const std::lock_guard lock(mutex_);
  news_ = {std::string(stage), done, total, failed};
  fresh_ = true;
}

void Watch::report_or_end(std::string_view stage, size_t done, size_t total) {
  if (stop_) throw Ended{};
  report(stage, done, total);
}

void Watch::tell(std::optional<nb::python_error>& failure) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    if (!fresh_) return;
    news = news_, fresh_ = false;
  }
  if (progress_.is_none() || failure) return;
  try {
    progress_(news.stage, news.done, news.total, news.failed);
  } catch (nb::python_error& error) {
    failure.emplace(std::move(error));
    stop_ = true;
  }
}

void Watch::run(const std::function<void()>& work) {
  constexpr auto kLook = std::chrono::milliseconds(50);
  std::exception_ptr thrown;
  std::optional<nb::python_error> failure;
  bool finished = false;
  std::mutex waiting;
  std::condition_variable end;
  {
    const nb::gil_scoped_release free;
    std::thread worker([&] {
      try {
        work();
      } catch (const Ended&) {
      } catch (...) {
        thrown = std::current_exception();
      }
      const std::lock_guard lock(waiting);
      finished = true;
      end.notify_one();
    });
    std::unique_lock lock(waiting);
    while (!end.wait_for(lock, kLook, [&] { return finished; })) {
      lock.unlock();
      {
        const nb::gil_scoped_acquire held;
        if (!failure && PyErr_CheckSignals() != 0) {
          failure.emplace();
          stop_ = true;
        }
        tell(failure);
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (!failure && !thrown) tell(failure);
  if (failure) throw std::move(*failure);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace fungi::python
