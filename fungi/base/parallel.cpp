// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/parallel.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"

namespace fungi {

unsigned default_threads() {
  const Cpu& c = cpu();
  return c.quota ? std::min(c.quota, c.physical_cores) : c.physical_cores;
}

namespace {

// The pools whose bodies this thread is running, innermost first: a body may use another pool.
struct Running {
  const void* pool;
  const Running* outer;
};
thread_local const Running* running_here = nullptr;

}  // namespace

struct Pool::State {
  std::mutex turn;  // held by the caller whose range runs
  std::mutex mutex;
  std::condition_variable work_ready, work_done;
  const std::function<void(size_t, size_t, unsigned)>* body = nullptr;
  size_t count = 0, grain = 1;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};  // set by the first failure: later chunks are not started
  size_t generation = 0, running = 0;
  bool closing = false;
  std::exception_ptr error;
  size_t error_chunk = 0;
  std::vector<std::thread> threads;

  void close() {
    {
      std::lock_guard lock(mutex);
      closing = true;
    }
    work_ready.notify_all();
    for (auto& t : threads) t.join();
  }

  void run_chunks(unsigned worker) {
    const Running here{this, running_here};
    running_here = &here;
    take_chunks(worker);
    running_here = here.outer;
  }

  void take_chunks(unsigned worker) {
    while (!stop.load(std::memory_order_relaxed)) {
      const size_t begin = next.fetch_add(grain);
      if (begin >= count) return;
      try {
        (*body)(begin, begin + grain < count ? begin + grain : count, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error || begin < error_chunk) error = std::current_exception(), error_chunk = begin;
        stop = true;
      }
    }
  }

  void worker_loop(unsigned worker) {
    size_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return closing || generation != seen; });
        if (closing) return;
        seen = generation;
      }
      run_chunks(worker);
      std::lock_guard lock(mutex);
      if (--running == 0) work_done.notify_one();
    }
  }
};

Pool::Pool(unsigned threads) : state_(std::make_unique<State>()) {
  try {
    for (unsigned i = 1; i < threads; ++i)
      state_->threads.emplace_back([s = state_.get(), i] { s->worker_loop(i); });
  } catch (const std::system_error& e) {
    const size_t started = state_->threads.size() + 1;
    state_->close();
    fail(fmt::format("expected to start {} threads, the system allows {}: {}", threads, started,
                     e.code().message()),
         "threads", "use fewer");
  } catch (...) {
    state_->close();  // a thread that is not joined would end the program
    throw;
  }
}

Pool::~Pool() { state_->close(); }

unsigned Pool::threads() const noexcept { return unsigned(state_->threads.size()) + 1; }

void Pool::require_outside() const {
  for (const Running* r = running_here; r; r = r->outer)
    if (r->pool == state_.get())
      fail("the body of a parallel range called its own pool, which would wait for itself",
           "Pool::parallel_for", "give it a pool of its own, or work in the body's own thread");
}

void Pool::parallel_for(size_t count, size_t grain,
                        const std::function<void(size_t, size_t, unsigned)>& body) {
  if (!body) fail("expected a function to run, found none", "Pool::parallel_for");
  if (count == 0) return;
  State& s = *state_;
  require_outside();
  const std::lock_guard turn(s.turn);
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.grain = grain ? grain : 1;
    s.next = 0;
    s.stop = false;
    s.error = nullptr;
    s.running = s.threads.size();
    ++s.generation;
  }
  s.work_ready.notify_all();
  s.run_chunks(0);
  std::unique_lock lock(s.mutex);
  s.work_done.wait(lock, [&] { return s.running == 0; });
  s.body = nullptr;
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace fungi
