// SPDX-License-Identifier: Apache-2.0
// What ranks that extract together say to each other, as bytes. Internal to the library.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fungi/feature/extract_ranks.h"
#include "fungi/store/member_writer.h"

namespace fungi {

// A shard for another rank to compute: numbers of samples, and their keys, which take a look at the
// disk.
struct Given {
  size_t work = 0, shard = 0;
  bool write = false;  // into the store; else the rows are sent
  std::vector<size_t> samples;
  std::vector<std::string> keys;
};

// What came of it.
struct Done {
  enum class Kind : char { nothing, written, rows };
  Kind kind = Kind::nothing;
  size_t work = 0;
  StoreRows rows;  // written: the failures alone
};

std::string to_bytes(const Given& given);
Given read_given(const std::string& bytes);
std::string to_bytes(const Done& done);
Done read_done(const std::string& bytes);
std::string to_bytes(const RankJob& job);
RankJob read_job(const std::string& bytes);
std::string to_bytes(const std::vector<NamedMatrix>& state, const MemberPlace& place);
std::pair<std::vector<NamedMatrix>, MemberPlace> read_begin(const std::string& bytes);

}  // namespace fungi
