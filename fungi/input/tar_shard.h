// SPDX-License-Identifier: Apache-2.0
// One tar archive of a data set: what its names mean, and the bytes of its members. Only the files
// of tar data sets include it. Internal to this room.
#pragma once

#include <list>
#include <map>
#include <mutex>
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
struct Holdings {
  std::mutex mutex;                // of what is below and of what each shard holds
  std::list<const Shard*> shards;  // those that hold something, the last one read first
  size_t bytes = 0;                // of members read ahead of their turn
  size_t most_bytes = size_t(256) << 20;
  size_t most_readers = 8;  // each has a file open and up to some 100 MB of a decompressor's memory
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
  struct Kept {
    std::vector<uint8_t> bytes;
    size_t left;  // how many samples will still ask for it
  };

  std::vector<uint8_t> read_at(const Member& member) const;
  std::vector<uint8_t> read_forwards(const Member& member) const;
  void keep(size_t ordinal, std::vector<uint8_t> bytes, size_t left) const;
  std::vector<uint8_t> take(std::map<size_t, Kept>::iterator kept) const;
  void trim_holdings() const;

  fs::path file_;
  bool compressed_ = false;
  std::unordered_map<size_t, size_t> wanted_;  // ordinal -> by how many samples
  size_t last_wanted_ = 0;                     // ordinal
  Holdings& held_;
  mutable std::unique_ptr<TarReader> reader_;
  mutable std::map<size_t, Kept> stash_;  // by ordinal: came by before they were asked for
};

}  // namespace fungi::dataset
