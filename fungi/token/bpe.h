// SPDX-License-Identifier: Apache-2.0
// Byte pairs: a word is its characters, of which the pair that was learnt first becomes one, again
// and again. Internal to this room.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"
#include "fungi/token/vocabulary.h"

namespace fungi::token {

struct BpeOptions {
  std::string unknown;     // empty: characters that are no piece are left out
  std::string continuing;  // before every character but the first
  std::string end_of_word;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};
using Merges = std::vector<std::pair<std::string, std::string>>;

ModelPtr make_bpe(const Vocabulary& vocabulary, const Merges& merges, const BpeOptions& options,
                  const std::string& place);
ModelPtr read_bpe(PartFields& part);

}  // namespace fungi::token
