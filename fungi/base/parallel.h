// SPDX-License-Identifier: Apache-2.0
// One pool of threads, owned by the caller and passed down. No work stealing inside a range: the
// range is cut into chunks of `grain`, workers take chunks in order, and a body must give the same
// bytes whoever runs it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace fungi {

// How many threads to use by default: the physical cores this process may run on, or fewer where a
// container's quota allows fewer.
unsigned default_threads();

class Pool {
 public:
  explicit Pool(unsigned threads = default_threads());  // the calling thread is one of them
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned threads() const noexcept;

  // Runs body(begin, end, worker) over [0, count) in chunks of at most `grain`; worker < threads().
  // Blocks until all is done. If bodies throw, the exception of the lowest chunk is rethrown here,
  // after the rest has stopped. Calls from several threads wait for each other, however long: an
  // extraction keeps the pool for a whole group of samples (ExtractorOptions::waiting_bytes), so
  // that what must answer at once needs a pool of its own. A body that calls its own pool gets an
  // Error, since it would wait for itself.
  void parallel_for(size_t count, size_t grain,
                    const std::function<void(size_t begin, size_t end, unsigned worker)>& body);

  // Error where a body of this pool calls: whatever waits for the pool would wait for itself.
  void require_outside() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
