// SPDX-License-Identifier: Apache-2.0
// The files of a model on a hub, and which of them are wanted: weights once, in one format and one
// precision, and what says how they are run. Internal to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

struct HubFile {
  std::string name;
  std::optional<uint64_t> bytes = {};
  std::string checksum = {};  // sha256 of its bytes, or git's own sum; empty: not told
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;

  const HubFile* find(std::string_view name) const;
};

// The hub's answer about a revision. Error where it is none, or names a file that would leave its
// folder.
HubListing parse_listing(std::string_view json, const std::string& place);

struct HubChoice {
  std::vector<HubFile> beside;  // configuration, tokeniser, preprocessor, licence
  HubFile weights;              // one file, or the index of several
  bool sharded = false;
};

// Whether a name is that of weights, or of the index of their shards; a shard alone is none.
bool is_weights(std::string_view name);

// `weights`: the file that a user names; empty: safetensors before others, and of variants the one
// without a word for it in its name. Error where nothing is to be had, with what there is.
HubChoice choose_files(const HubListing& listing, const std::string& weights,
                       const std::string& place);

// What the index of shards names. Error where the listing has no such file.
std::vector<HubFile> shards_of(std::string_view index, const HubChoice& choice,
                               const HubListing& listing, const std::string& place);

}  // namespace fungi
