// SPDX-License-Identifier: Apache-2.0
// The files of one folder of shards: their names, the lines of rows-*.jsonl and failed.jsonl, and
// the blocks' rows. The same for the store itself and for a rewrite that is under way beside it.
// Internal to the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/store/manifest.h"

namespace fungi::store {

using Path = std::filesystem::path;

inline constexpr size_t kMaxShards = 100000;  // five digits, so that names sort
inline constexpr char kManifest[] = "manifest.json";
inline constexpr char kFailed[] = "failed.jsonl";
inline constexpr char kCommit[] = "commit.json";  // marks a rewrite as whole: move it in place
inline constexpr char kState[] = "state";
inline constexpr char kLock[] = ".lock";

std::string block_file(std::string_view block, size_t shard);  // "kl-00007.npy"
std::string rows_file(size_t shard);                           // "rows-00007.jsonl"
std::string state_file(std::string_view name);                 // "state/kl-head.npy"

// The number in a file name made by the functions above, or kMaxShards when it is no such name.
size_t shard_number(std::string_view file, std::string_view stem, std::string_view suffix);

struct Row {
  std::string id;
  int64_t label = -1;
  std::string class_name, key;
  bool stale = false;  // StoreOptions::row_holds said no; not in the file
  bool operator==(const Row&) const = default;
};
std::string row_line(const Row& row);
// Error where it is not there. torn: a last line without its end, as a power failure may leave it,
// is no line.
std::vector<Row> read_rows(const Path& file, bool torn = false);

std::string failed_line(const FailedSample& sample);
// A last line without its end was cut by a kill and is left out. No file: no failures.
std::vector<FailedSample> read_failed(const Path& file);

// Of one shard, written by another process than that which has the store; and all failures that a
// folder holds, with those in such files, and the files.
std::string failed_file(size_t shard);  // "failed-00007.jsonl"
std::vector<FailedSample> read_all_failed(const Path& folder);
std::vector<Path> list_failed(const Path& folder);

// Numbers of the shards whose rows file is there, ascending.
std::vector<size_t> list_shards(const Path& folder);

// The .npy files of blocks and state. block_bytes: a whole file.
std::string block_bytes(View<const float> rows, StoreType type);
struct BlockFile {
  StoreType type = StoreType::float32;
  View<const float> values;           // mapped, or converted from float16
  std::shared_ptr<const void> owner;  // of the values
};
BlockFile open_block(const Path& file);

// Each row to this length, in place (zero stays zero). The answer: the first row with a value that
// is not finite, or the number of rows.
size_t unit_rows(View<float> rows, float weight = 1);

// What to do about a file of a shard that is missing or was cut.
inline constexpr char kRepeat[] =
    "repeat the command that wrote the store: it makes this shard again";

// Permissions, too many open files: that says nothing about what the file holds.
bool cannot_be_opened(const Error& error);

// Whether all block files of this shard hold `rows` rows of the right type and width. Throws where
// that cannot be told.
bool shard_is_whole(const Path& folder, const StoreSpec& spec, size_t shard, size_t rows);

// State arrays: read and compared with what the manifest says; Error naming the file when it was
// changed.
Matrix<float> read_state(const Path& folder, const StoreState& state);

}  // namespace fungi::store
