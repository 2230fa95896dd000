// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/holding.h"

#include <sys/stat.h>

#include <new>

#include "fungi/retrieve/feature_index.h"
#include "fungi/service/refused.h"

namespace fungi::service {

Holding::Holding(ServedStore source, size_t memory,
                 const std::vector<std::shared_ptr<const Opened>>& others, Pool& pool)
    : source_(std::move(source)), memory_(memory), pool_(pool), seen_(mark()) {
  opened_ = std::make_shared<const Opened>(source_, memory_, 1, others, pool_);
  if (!source_.data.empty()) samples_ = std::make_unique<Samples>(source_, opened_->manifest());
}

Holding::Mark Holding::mark() const {
  for (const char* file : {"index.json", "manifest.json"}) {
    struct stat s {};
    if (::stat((source_.path / file).c_str(), &s) == 0)
      return {int64_t(s.st_mtim.tv_sec), int64_t(s.st_mtim.tv_nsec), uint64_t(s.st_size),
              uint64_t(s.st_ino), uint64_t(s.st_dev)};
  }
  return {};
}

std::string Holding::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

std::shared_ptr<const Opened> Holding::now() {
  constexpr auto kLook = std::chrono::milliseconds(500);
  std::unique_lock lock(mutex_);
  const auto clock = std::chrono::steady_clock::now();
  if (clock - looked_ < kLook && !gone_) return opened_;
  const Mark there = mark();
  looked_ = clock;
  gone_ = there == Mark{};
  if (gone_) {
    trouble_ = "the store '" + source_.name + "' has gone";
    throw Refused(503, trouble_, "put it back: the server looks for it at every request", 5);
  }
  if (there == seen_) {
    trouble_.clear();
    return opened_;
  }
  // One thread opens it; the others go on with what there was.
  const std::shared_ptr<const Opened> before = opened_;
  const std::unique_lock opening(opening_, std::try_to_lock);
  if (!opening.owns_lock()) return before;
  lock.unlock();
  std::shared_ptr<const Opened> fresh;
  std::string trouble;
  try {
    fresh = std::make_shared<const Opened>(source_, memory_, before->version() + 1,
                                           std::vector{before}, pool_);
  } catch (const Error& e) {
    trouble = "what lies there now cannot be opened: " + e.message();
  } catch (const std::bad_alloc&) {
    trouble = "there is no memory to open what lies there now";
  }
  lock.lock();
  trouble_ = trouble;
  if (!fresh) return before;  // it is looked at again soon
  seen_ = there;
  return opened_ = fresh;
}

}  // namespace fungi::service
