// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/tar_shard.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

#include "fungi/base/descriptor.h"

namespace fungi::dataset {

void Shard::add(const Member& member) {
  ++wanted_[member.ordinal];
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
  if (!read_all_at(file, member.offset, std::as_writable_bytes(std::span(bytes)))) {
    if (errno) fail_reading("cannot read the archive", errno, file_);
    failed("it has become shorter since it was indexed");
  }
  return bytes;
}

// Reads on until the member comes by, keeping what others will ask for; starts again when it has
// passed.
std::vector<uint8_t> Shard::read_forwards(const Member& member) const {
  const std::lock_guard lock(held_.mutex);
  held_.shards.remove(this);
  held_.shards.push_front(this);
  if (const auto kept = stash_.find(member.ordinal); kept != stash_.end()) {
    if (--kept->second.left > 0) return kept->second.bytes;
    return take(kept);
  }
  if (!reader_ || reader_->ordinal() >= member.ordinal) {
    reader_ = std::make_unique<TarReader>(file_);
    trim_holdings();
  }
  while (reader_->next()) {
    const size_t ordinal = reader_->ordinal();
    const auto wanted = wanted_.find(ordinal);
    if (ordinal == member.ordinal) {
      std::vector<uint8_t> bytes = reader_->data();
      if (wanted != wanted_.end() && wanted->second > 1)  // links will ask for it, too
        keep(ordinal, bytes, wanted->second - 1);
      if (ordinal >= last_wanted_) reader_.reset();
      return bytes;
    }
    if (wanted != wanted_.end() && !stash_.count(ordinal))
      keep(ordinal, reader_->data(), wanted->second);
  }
  fail("cannot read the archive: it has changed since it was indexed", file_.string());
}

void Shard::keep(size_t ordinal, std::vector<uint8_t> bytes, size_t left) const {
  held_.bytes += bytes.size();
  stash_[ordinal] = {std::move(bytes), left};
  trim_holdings();
}

std::vector<uint8_t> Shard::take(std::map<size_t, Kept>::iterator kept) const {
  std::vector<uint8_t> bytes = std::move(kept->second.bytes);
  held_.bytes -= bytes.size();
  stash_.erase(kept);
  return bytes;
}

// Closes and forgets what is beyond the limits, beginning with the shard that was not read for the
// longest time, and in it with the first member.
void Shard::trim_holdings() const {
  size_t readers = 0;
  for (const Shard* shard : held_.shards)
    if (shard->reader_ && ++readers > held_.most_readers) shard->reader_.reset();
  for (auto at = held_.shards.rbegin(); at != held_.shards.rend(); ++at)
    while (held_.bytes > held_.most_bytes && !(*at)->stash_.empty())
      (*at)->take((*at)->stash_.begin());
  held_.shards.remove_if(
      [](const Shard* shard) { return !shard->reader_ && shard->stash_.empty(); });
}

}  // namespace fungi::dataset
