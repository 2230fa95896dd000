// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/tar_shard.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

#include "fungi/base/descriptor.h"

namespace fungi::dataset {

void Shard::add(const Member& member) {
  Wanted& wanted = wanted_[member.ordinal];
  ++wanted.by;
  ++wanted.left;
  last_wanted_ = std::max(last_wanted_, member.ordinal);
}

std::vector<uint8_t> Shard::read_at(const Member& member) const {
  const auto failed = [&](const std::string& why) {
    fail(fmt::format("cannot read the archive: {}", why), file_.string());
  };
  const Descriptor file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0) fail_reading("cannot read the archive", errno, file_);
  if (!fits(member.offset, member.size, size_of_file(file_)))
    failed("it is shorter than its headers say");
  std::vector<uint8_t> bytes(member.size);
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got =
        ::pread(file.number, bytes.data() + at, bytes.size() - at, off_t(member.offset + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading("cannot read the archive", errno, file_);
    if (got == 0) failed("it has become shorter since it was indexed");
    at += size_t(got);
  }
  return bytes;
}

// Reads on until the member comes by, keeping what others will ask for; starts again when it has
// passed. Each turn of the loop looks at everything anew: while one waits, others go on.
std::vector<uint8_t> Shard::read_forwards(const Member& member) const {
  announce(member.ordinal);
  std::unique_lock lock(held_.mutex);
  if (left(member.ordinal) == 0)  // all had it: they go through the archive once more
    for (auto& [ordinal, wanted] : wanted_) wanted.left = wanted.by;
  for (;;) {
    held_.shards.remove(this);
    held_.shards.push_front(this);
    if (const auto kept = stash_.find(member.ordinal); kept != stash_.end()) {
      give(member.ordinal);
      return left(member.ordinal) > 0 ? kept->second : take(kept);
    }
    if (!reader_ || passed() >= member.ordinal) begin();
    if (!at_hand_ && !reader_->next())
      fail("cannot read the archive: it has changed since it was indexed", file_.string());
    at_hand_ = true;
    const size_t ordinal = reader_->ordinal(), size = reader_->size();
    if (ordinal == member.ordinal) {
      at_hand_ = false;
      std::vector<uint8_t> bytes = reader_->data();
      give(ordinal);
      if (left(ordinal) > 0 && make_room(size)) keep(ordinal, bytes);  // links will ask for it, too
      if (ordinal >= last_wanted_) reader_.reset();
      return bytes;
    }
    const bool expected = left(ordinal) > 0 && !stash_.count(ordinal) && size <= held_.most_bytes;
    const bool room = expected && make_room(size);
    if (expected && !room && ordinal > first_asked_) {
      wait_for_others(member.ordinal, lock);
      continue;
    }
    at_hand_ = false;
    if (room) keep(ordinal, reader_->data());
  }
}

void Shard::announce(size_t ordinal) const {
  std::thread::id first{};
  const std::thread::id me = std::this_thread::get_id();
  if (!held_.first_thread.compare_exchange_strong(first, me) && first != me) held_.several = true;
  size_t lowest = first_asked_;
  while (ordinal < lowest && !first_asked_.compare_exchange_weak(lowest, ordinal)) {
  }
}

// Opens the archive, and closes those beyond the limit that were not read for the longest time.
void Shard::begin() const {
  reader_ = std::make_unique<TarReader>(file_);
  at_hand_ = false;
  ++held_.begun;
  size_t readers = 0;
  for (const Shard* shard : held_.shards)
    if (shard->reader_ && ++readers > held_.most_readers) shard->reader_.reset();
  forget_down_to(held_.most_bytes);
}

// Ordinal of the last member that cannot be read any more.
size_t Shard::passed() const { return reader_->ordinal() - (at_hand_ ? 1 : 0); }

// How many samples will still ask for it.
size_t Shard::left(size_t ordinal) const {
  const auto wanted = wanted_.find(ordinal);
  return wanted == wanted_.end() ? 0 : wanted->second.left;
}

void Shard::give(size_t ordinal) const {
  if (left(ordinal) > 0) --wanted_[ordinal].left;
}

// One thread alone forgets what it did not ask for so far; several wait for each other, and forget
// only what lies before all that they ask for.
bool Shard::make_room(size_t bytes) const {
  if (!held_.several && bytes <= held_.most_bytes) forget_down_to(held_.most_bytes - bytes);
  const auto fits = [&] { return held_.bytes + bytes <= held_.most_bytes; };
  while (!fits() && !stash_.empty() && stash_.begin()->first < first_asked_) take(stash_.begin());
  return fits();
}

void Shard::keep(size_t ordinal, std::vector<uint8_t> bytes) const {
  held_.bytes += bytes.size();
  stash_[ordinal] = std::move(bytes);
  held_.changed.notify_all();
}

std::vector<uint8_t> Shard::take(Stash::iterator kept) const {
  std::vector<uint8_t> bytes = std::move(kept->second);
  held_.bytes -= bytes.size();
  stash_.erase(kept);
  ++held_.takes;
  held_.changed.notify_all();
  return bytes;
}

// Begins with the shard that was not read for the longest time, and in it with the first member.
void Shard::forget_down_to(size_t bytes) const {
  for (auto at = held_.shards.rbegin(); at != held_.shards.rend(); ++at)
    while (held_.bytes > bytes && !(*at)->stash_.empty()) (*at)->take((*at)->stash_.begin());
  held_.shards.remove_if(
      [](const Shard* shard) { return !shard->reader_ && shard->stash_.empty(); });
}

// Until another thread has taken something, or has come by the member itself.
void Shard::wait_for_others(size_t ordinal, std::unique_lock<std::mutex>& lock) const {
  const auto over = [&, before = held_.takes] {
    return held_.takes != before || stash_.count(ordinal);
  };
  if (!held_.changed.wait_for(lock, held_.patience, over)) forget_down_to(0);
}

}  // namespace fungi::dataset
