// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/batch_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "fungi/service/refused.h"

namespace fungi::service {

BatchQueue::BatchQueue(Limits limits, std::function<bool(const Job&, const Job&)> same,
                       std::function<void(const Jobs&)> run)
    : limits_(limits), same_(std::move(same)), run_(std::move(run)), thread_([this] { work(); }) {}

BatchQueue::~BatchQueue() {
  stop();
  thread_.join();
}

size_t BatchQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

double BatchQueue::seconds_to_wait() const {
  return std::clamp(std::ceil(double(waiting_) * seconds_per_weight_), 1.0, 600.0);
}

bool BatchQueue::ask(const std::shared_ptr<Job>& job, const std::function<bool()>& gone) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  if (stopping_) throw Refused(503, "the server is about to end", "ask another one", 1);
  // One that is too large by itself has to wait for an empty queue, not for ever.
  if (waiting_ > 0 && waiting_ + job->weight > limits_.waiting)
    throw Refused(429, fmt::format("{} samples wait already, {} may", waiting_, limits_.waiting),
                  "come back later, as Retry-After says", seconds_to_wait());
  queue_.push_back(job);
  waiting_ += job->weight;
  work_.notify_one();
  while (job->state_ != Job::State::done) {
    done_.wait_for(lock, kLook);
    if (job->state_ == Job::State::done || !gone) continue;
    lock.unlock();
    const bool left = gone();
    lock.lock();
    if (!left || job->state_ == Job::State::done) continue;
    if (job->state_ == Job::State::waiting) {
      queue_.erase(std::find(queue_.begin(), queue_.end(), job));
      waiting_ -= job->weight;
    }
    return false;
  }
  if (job->trouble) std::rethrow_exception(job->trouble);
  return true;
}

void BatchQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& job : queue_) {
    job->trouble = std::make_exception_ptr(
        Refused(503, "the server is about to end", "ask another one", 1));
    job->state_ = Job::State::done;
  }
  queue_.clear();
  waiting_ = 0;
  work_.notify_all();
  done_.notify_all();
}

void BatchQueue::work() {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr double kPatience = 0.1, kMostPatience = 0.02;
  std::unique_lock lock(mutex_);
  size_t last = 1;  // weight of the pass before
  Seconds patience{0};
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    // Those who had their answers together ask again together: the first of them waits a moment for
    // the others, since a pass of one takes longer than its share of theirs.
    if (last > 1)
      work_.wait_for(lock, patience, [&] { return stopping_ || waiting_ >= last; });
    if (queue_.empty()) continue;
    Jobs batch;
    size_t weight = 0;
    for (auto at = queue_.begin(); at != queue_.end();) {
      const Job& job = **at;
      if (!batch.empty() && (weight + job.weight > limits_.batch || !same_(*batch.front(), job))) {
        ++at;
        continue;
      }
      weight += job.weight;
      (*at)->state_ = Job::State::running;
      batch.push_back(std::move(*at));
      at = queue_.erase(at);
    }
    waiting_ -= weight;
    lock.unlock();
    const auto begin = Clock::now();
    std::exception_ptr trouble;
    try {
      run_(batch);
    } catch (...) {
      trouble = std::current_exception();
    }
    const Seconds taken = Clock::now() - begin;
    last = weight;
    patience = Seconds(std::min(kPatience * taken.count(), kMostPatience));
    lock.lock();
    seconds_per_weight_ += 0.2 * (taken.count() / double(weight) - seconds_per_weight_);
    for (const auto& job : batch) {
      if (!job->trouble) job->trouble = trouble;
      job->state_ = Job::State::done;
    }
    done_.notify_all();
  }
}

}  // namespace fungi::service
