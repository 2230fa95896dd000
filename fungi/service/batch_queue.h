// SPDX-License-Identifier: Apache-2.0
// Work that arrives together is done together: callers wait in a queue, and one thread takes all
// that fits into one pass. Internal to this room.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fungi::service {

struct Job {
  virtual ~Job() = default;
  size_t weight = 1;
  std::exception_ptr trouble;  // instead of a result

 private:
  friend class BatchQueue;
  enum class State { waiting, running, done } state_ = State::waiting;
};
using Jobs = std::vector<std::shared_ptr<Job>>;

class BatchQueue {
 public:
  struct Limits {
    size_t waiting = 256;  // weight that may wait
    size_t batch = 64;     // weight of one pass, or one job
  };
  // same: whether a job fits into the pass of another. run: computes a pass; what it throws is the
  // trouble of every job that has none.
  BatchQueue(Limits limits, std::function<bool(const Job&, const Job&)> same,
             std::function<void(const Jobs&)> run);
  ~BatchQueue();

  // Until the job is done; throws its trouble. gone(): is asked now and then; once it says yes the
  // job leaves the queue, or is not waited for, and the answer is false. Refused (429) where the
  // queue is full.
  bool ask(const std::shared_ptr<Job>& job, const std::function<bool()>& gone);

  size_t waiting() const;  // weight
  // Every job that waits, and all that come, are refused (503).
  void stop();

 private:
  void work();
  double seconds_to_wait() const;

  Limits limits_;
  std::function<bool(const Job&, const Job&)> same_;
  std::function<void(const Jobs&)> run_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Job>> queue_;
  size_t waiting_ = 0;
  double seconds_per_weight_ = 0.1;  // of late
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fungi::service
