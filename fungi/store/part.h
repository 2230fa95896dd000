// SPDX-License-Identifier: Apache-2.0
// A run on several machines shares the shards of one data set. Each share is a run of consecutive
// shards, so that every machine reads its files, and archives of many samples, in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fungi {

// "3/16": the third of sixteen.
struct StorePart {
  size_t index = 1, count = 1;
  bool operator==(const StorePart&) const = default;
};
StorePart parse_part(const std::string& text);
std::string to_string(const StorePart& part);

struct StoreSample {
  std::string id;        // unique in the data set; any bytes
  int64_t label = -1;    // index into the classes; -1: none
  std::string key = {};  // another one than before: the content changed; empty: nothing is known
  size_t container = 0;  // which archive it lies in, counted in the order of the samples
};

// The shards of each of `count` shares: number i has those from [i] to [i + 1]. As even as can be;
// where there are at least as many archives as shares, each boundary moves to the nearest beginning
// of an archive.
std::vector<size_t> share_shards(const std::vector<StoreSample>& samples, size_t shard_size,
                                 size_t count);

// A sum over ids and labels, which tells whether two lists of samples in shards are the same.
std::string data_sum(const std::vector<StoreSample>& samples,
                     const std::vector<std::string>& classes, size_t shard_size);

// First and last sample (one past it) of a part.
std::pair<size_t, size_t> samples_of_part(const std::vector<StoreSample>& samples,
                                          size_t shard_size, const StorePart& part);

}  // namespace fungi
