// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "fungi/input/tiff.h"

namespace fungi::codec::tiff {
namespace {

// Bytes of one value, by the type's number; 0: unknown, and passed over.
constexpr unsigned kSizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};

bool is_whole(uint16_t type) {  // short, long, their signed kin, directories, long8
  return type == 3 || type == 4 || type == 6 || type == 8 || type == 9 || type == 13 || type == 16;
}

bool is_signed(uint16_t type) { return type == 6 || type == 8 || type == 9; }

uint64_t whole_number(Bytes bytes, bool big) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= uint64_t(bytes[i]) << 8 * (big ? bytes.size() - 1 - i : i);
  return value;
}

}  // namespace

Directory::Directory(Bytes file, std::string_view name) : file_(file), name_(name) {
  big_ = file[0] == 'M';
  long_offsets_ = file[2] == 43 || file[3] == 43;
  if (long_offsets_ && big_)
    fail_corrupt("TIFF", name, "it is a BigTIFF whose highest bytes come first");
  const auto first = long_offsets_ ? read(8, 8) : read(4, 4);
  if (!first) fail_truncated("TIFF", name, "its bytes end within the header");
  if (!*first) fail_corrupt("TIFF", name, "it holds no picture");
  offset_ = *first;
  read_entries();
}

std::optional<uint64_t> Directory::read(uint64_t at, size_t size) const {
  if (at > file_.size() || file_.size() - at < size) return std::nullopt;
  return whole_number(file_.subspan(at, size), big_);
}

void Directory::read_entries() {
  const size_t word = long_offsets_ ? 8 : 4;
  const auto count = read(offset_, long_offsets_ ? 8 : 2);
  uint64_t at = offset_ + (long_offsets_ ? 8 : 2), total = 0;
  for (uint64_t i = 0; count && i < *count; ++i, at += 4 + 2 * word) {
    const auto tag = read(at, 2), type = read(at + 2, 2), values = read(at + 4, word);
    const auto place = read(at + 4 + word, word);
    if (!place) return;
    const unsigned unit = *type < std::size(kSizes) ? kSizes[*type] : 0;
    if (unit == 0 || *values == 0 || find(uint16_t(*tag))) continue;
    const uint64_t size = std::min(*values, uint64_t(1) << 50) * unit;
    uint64_t from = at + 4 + word;
    if (size > word) {
      if (*place >> 63) continue;
      total = std::min(total + size, uint64_t(1) << 60);
      if (total > file_.size()) continue;
      from = *place;
      if (from > file_.size() || file_.size() - from < size) return;
    }
    entries_.emplace(uint16_t(*tag), Entry{uint16_t(*type), file_.subspan(from, size)});
  }
}

const Directory::Entry* Directory::find(uint16_t tag) const {
  const auto found = entries_.find(tag);
  return found == entries_.end() ? nullptr : &found->second;
}

Bytes Directory::bytes(uint16_t tag) const {
  const Entry* entry = find(tag);
  return entry ? entry->data : Bytes();
}

size_t Directory::count(uint16_t tag) const {
  const Entry* entry = find(tag);
  return entry ? entry->data.size() / kSizes[entry->type] : 0;
}

std::vector<int64_t> Directory::numbers(uint16_t tag) const {
  const Entry* entry = find(tag);
  if (!entry) return {};
  if (!is_whole(entry->type))
    fail_corrupt("TIFF", name_, "its tag " + std::to_string(tag) + " holds no whole numbers");
  const unsigned unit = kSizes[entry->type], unused = 64 - 8 * unit;
  std::vector<int64_t> out;
  for (size_t at = 0; at < entry->data.size(); at += unit) {
    const uint64_t value = whole_number(entry->data.subspan(at, unit), big_);
    out.push_back(is_signed(entry->type) ? int64_t(value << unused) >> unused : int64_t(value));
  }
  return out;
}

std::optional<int64_t> Directory::number(uint16_t tag) const {
  const auto all = numbers(tag);
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

}  // namespace fungi::codec::tiff
