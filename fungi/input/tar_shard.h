// SPDX-License-Identifier: Apache-2.0
// One tar archive of a data set: what its names mean, and the bytes of its members. Only the files
// of tar data sets include it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "fungi/input/tar_reader.h"

namespace fungi::dataset {

struct Member {
  size_t ordinal = 0;
  uint64_t offset = 0, size = 0;
};

// What the names of a shard mean, links followed.
class Names {
 public:
  void add(const TarReader& reader) {
    const std::string name = reader.name();
    const std::optional<std::string> target = reader.target();
    const auto known = target ? members_.find(*target) : members_.end();
    if (!target)
      members_[name] = {reader.ordinal(), reader.offset(), reader.size()};
    else if (!reader.is_symbolic() && known != members_.end())
      members_[name] = Member(known->second);  // as it is so far: a later one may have its name
    else
      targets_[name] = *target;
  }

  // Nullptr: a link to something that is not there, or to itself.
  const Member* find(std::string name) const {
    for (int hops = 0; hops < 40; ++hops) {  // as many as Linux follows
      if (const auto member = members_.find(name); member != members_.end()) return &member->second;
      const auto link = targets_.find(name);
      if (link == targets_.end()) return nullptr;
      name = link->second;
    }
    return nullptr;
  }
  const std::string& target(const std::string& name) const { return targets_.at(name); }

 private:
  std::unordered_map<std::string, Member> members_;
  std::unordered_map<std::string, std::string> targets_;
};

class Shard;

// What the compressed shards of a data set hold from one read to the next, all together. One lock
// for all: threads that go through the samples in order read the same shard anyway.
//
// Threads ask for samples that lie far from each other, each for its own run of them, and the one
// that is ahead reads what the others will ask for. When that fills the memory it waits until they
// have taken some of it: were theirs forgotten instead, each would read the archive again from its
// beginning. What is held may be wanted by nobody (a run that is resumed asks for few of them), so
// it waits for `patience` only: if nothing is taken meanwhile, all is forgotten and reading goes
// on.
struct Holdings {
  std::mutex mutex;                 // of what is below and of what each shard holds
  std::condition_variable changed;  // what is held
  size_t takes = 0;                 // how often something went out of it
  std::list<const Shard*> shards;   // those that hold something, the last one read first
  size_t bytes = 0;                 // of members read ahead of their turn
  size_t begun = 0;                 // how often an archive was read from its beginning
  size_t most_bytes = size_t(256) << 20;
  size_t most_readers = 8;  // each has a file open and up to some 100 MB of a decompressor's memory
  std::chrono::milliseconds patience{2000};  // longer than most pictures take to decode
  // Told before the mutex is taken, so that who reads under it knows of those that wait for it.
  std::atomic<std::thread::id> first_thread{};
  std::atomic<bool> several = false;  // threads have asked; one alone never waits
};

// One archive with its index of image members.
class Shard {
 public:
  Shard(fs::path file, Holdings& held) : file_(std::move(file)), held_(held) {}

  const fs::path& file() const { return file_; }
  void set_compressed(bool compressed) { compressed_ = compressed; }
  void add(const Member& member);  // a sample will ask for it

  std::vector<uint8_t> read(const Member& member) const {
    return compressed_ ? read_forwards(member) : read_at(member);
  }

 private:
  struct Wanted {
    uint32_t by = 0;    // so many samples
    uint32_t left = 0;  // of them, those that have not had it yet
  };
  using Stash = std::map<size_t, std::vector<uint8_t>>;

  std::vector<uint8_t> read_at(const Member& member) const;
  std::vector<uint8_t> read_forwards(const Member& member) const;
  void announce(size_t ordinal) const;
  void begin() const;
  size_t passed() const;
  size_t left(size_t ordinal) const;
  void give(size_t ordinal) const;
  bool make_room(size_t bytes) const;
  void keep(size_t ordinal, std::vector<uint8_t> bytes) const;
  std::vector<uint8_t> take(Stash::iterator kept) const;
  void forget_down_to(size_t bytes) const;
  void wait_for_others(size_t ordinal, std::unique_lock<std::mutex>& lock) const;

  fs::path file_;
  bool compressed_ = false;
  Holdings& held_;
  mutable std::unordered_map<size_t, Wanted> wanted_;  // by ordinal
  size_t last_wanted_ = 0;                             // ordinal
  // What lies before the first ordinal that was asked for was perhaps done by an earlier run.
  mutable std::atomic<size_t> first_asked_ = std::numeric_limits<size_t>::max();
  mutable std::unique_ptr<TarReader> reader_;
  mutable bool at_hand_ = false;  // the reader's member was neither read nor passed over
  mutable Stash stash_;           // by ordinal: came by before they were asked for
};

}  // namespace fungi::dataset
