// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "fungi/base/error.h"

namespace fungi::store {

Row Layout::row(size_t sample, const std::string& stored_key) const {
  const StoreSample& s = samples[sample];
  Row row{s.id, s.label, "", s.key.empty() ? stored_key : s.key};
  if (s.label >= 0 && !classes.empty()) row.class_name = classes[static_cast<size_t>(s.label)];
  return row;
}

void Layout::number_classes_after(const std::vector<std::string>& first) {
  if (first.empty() || classes.empty()) return;  // bare numbers mean what they mean
  std::vector<std::string> all = first;
  std::unordered_map<std::string, int64_t> numbers;
  for (size_t i = 0; i < all.size(); ++i) numbers.emplace(all[i], static_cast<int64_t>(i));
  std::vector<int64_t> translated;
  for (std::string& name : classes) {
    const auto [at, added] = numbers.emplace(name, static_cast<int64_t>(all.size()));
    translated.push_back(at->second);
    if (added) all.push_back(std::move(name));
  }
  for (StoreSample& sample : samples) {
    if (sample.label >= 0) sample.label = translated[static_cast<size_t>(sample.label)];
  }
  classes = std::move(all);
}

void Layout::require_valid() const {
  if (samples.empty()) fail("the data set holds no samples", "data set");
  if (shards() > kMaxShards) {
    fail(fmt::format("{} samples in shards of {} make {} shards; at most {} are possible",
                     samples.size(), shard_size, shards(), kMaxShards),
         "shard size", "make the shards larger");
  }
  std::unordered_set<std::string_view> seen;
  seen.reserve(samples.size());
  for (const StoreSample& sample : samples) {
    if (sample.id.empty()) fail("a sample has an empty id", "data set");
    if (!seen.insert(sample.id).second) {
      fail(fmt::format("two samples have the id '{}'", sample.id), "data set",
           "ids name the rows of the store and must be unique");
    }
    const auto count = static_cast<int64_t>(classes.size());
    if (sample.label < -1 || (!classes.empty() && sample.label >= count)) {
      fail(fmt::format("the label {} of sample '{}' has no class: there are {} classes",
                       sample.label, sample.id, count),
           "data set");
    }
  }
}

bool same_content(const StoreSample& sample, const std::string& key) {
  return sample.key.empty() || sample.key == key;
}

const FailedSample* Failures::find(const StoreSample& sample) const {
  const auto found = by_id_.find(sample.id);
  if (found == by_id_.end()) return nullptr;
  const auto& all = found->second;
  const auto last = std::find_if(all.rbegin(), all.rend(),
                                 [&](const auto& f) { return same_content(sample, f.key); });
  return last == all.rend() ? nullptr : &*last;
}

bool matches(const Layout& layout, size_t shard, const std::vector<Row>& rows,
             const Failures& failures) {
  if (shard >= layout.shards()) return false;
  size_t next = 0;
  for (size_t i = layout.first(shard); i < layout.last(shard); ++i) {
    if (next < rows.size() && rows[next].id == layout.samples[i].id) {
      if (rows[next] != layout.row(i, rows[next].key)) return false;
      ++next;
    } else if (failures.find(layout.samples[i]) == nullptr) {
      return false;
    }
  }
  return next == rows.size();
}

void Sources::add(const Path& folder, size_t shard, const std::vector<Row>& rows) {
  if (folders_.empty() || folders_.back() != folder) folders_.push_back(folder);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].stale) continue;
    by_id_.insert_or_assign(rows[i].id, Location{folders_.size() - 1, shard, i, rows[i].key});
  }
}

const Sources::Location* Sources::find(const StoreSample& sample) const {
  const auto found = by_id_.find(sample.id);
  return found != by_id_.end() && same_content(sample, found->second.key) ? &found->second
                                                                          : nullptr;
}

void Sources::read(const Location& location, const StoreBlock& block, float* out) {
  auto found = open_.find(block.name);
  if (found == open_.end() || found->second.folder != location.folder ||
      found->second.shard != location.shard) {
    BlockFile file = open_block(folders_[location.folder] / block_file(block.name, location.shard));
    Open opened{location.folder, location.shard, std::move(file)};
    found = open_.insert_or_assign(block.name, std::move(opened)).first;
  }
  const View<const float> values = found->second.file.values;
  FUNGI_ASSERT(location.row < values.rows && values.cols == block.size());
  std::copy_n(values.row(location.row), block.size(), out);
}

}  // namespace fungi::store
