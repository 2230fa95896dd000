// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, so that tests of what runs on many need no MPI.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "fungi/comm/comm.h"

namespace fungi::test {

class ThreadRanks {
 public:
  explicit ThreadRanks(size_t size) : size_(size) {}

  // Runs body(comm) on each rank; the first Error that a rank ends with, by rank, is given back
  // (others are those that it caused).
  std::vector<std::string> run(const std::function<void(Comm&)>& body) {
    std::vector<std::string> errors(size_);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < size_; ++r)
      threads.emplace_back([&, r] {
        Rank comm(*this, r);
        try {
          body(comm);
        } catch (const Error& error) {
          errors[r] = error.what();
          comm.tell_failure(error);
        }
      });
    for (std::thread& t : threads) t.join();
    return errors;
  }

 private:
  using Box = std::tuple<size_t, size_t, int>;  // from, to, tag

  class Rank final : public Comm {
   public:
    Rank(ThreadRanks& all, size_t rank) : all_(all), rank_(rank) {}
    size_t rank() const override { return rank_; }
    size_t size() const override { return all_.size_; }
    std::string host(size_t) const override { return "here"; }
    void send(size_t to, Tag tag, std::string bytes) override {
      const std::lock_guard lock(all_.mutex_);
      if (all_.failure_) throw Error(*all_.failure_);
      all_.boxes_[{rank_, to, tag}].push_back(std::move(bytes));
      all_.arrived_.notify_all();
    }
    std::string receive(size_t from, Tag tag) override {
      std::unique_lock lock(all_.mutex_);
      auto& box = all_.boxes_[{from, rank_, tag}];
      all_.arrived_.wait(lock, [&] { return !box.empty() || all_.failure_; });
      if (all_.failure_) throw Error(*all_.failure_);
      return take(box);
    }
    std::optional<Message> poll(Tag tag) override {
      const std::lock_guard lock(all_.mutex_);
      if (all_.failure_) throw Error(*all_.failure_);
      for (size_t from = 0; from < all_.size_; ++from)
        if (auto& box = all_.boxes_[{from, rank_, tag}]; !box.empty())
          return Message{from, take(box)};
      return {};
    }
    void tell_failure(const Error& error) override {
      const std::lock_guard lock(all_.mutex_);
      if (!all_.failure_)
        all_.failure_ = Error("rank " + std::to_string(rank_) + " on here: " + error.message(),
                              error.place(), error.hint());
      all_.arrived_.notify_all();
    }
    std::optional<Error> failure() const override {
      const std::lock_guard lock(all_.mutex_);
      return all_.failure_;
    }

   private:
    static std::string take(std::deque<std::string>& box) {
      std::string bytes = std::move(box.front());
      box.pop_front();
      return bytes;
    }
    ThreadRanks& all_;
    size_t rank_;
  };

  size_t size_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Box, std::deque<std::string>> boxes_;
  std::optional<Error> failure_;
};

// Every rank must end without an Error.
inline void on_ranks(size_t size, const std::function<void(Comm&)>& body) {
  const std::vector<std::string> errors = ThreadRanks(size).run(body);
  for (size_t r = 0; r < size; ++r) EXPECT_EQ(errors[r], "") << "rank " << r << " of " << size;
}

}  // namespace fungi::test
