// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files, or somewhere in a folder: *.index.json with its shards, and the
// search for the one checkpoint that a folder holds.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "fungi/base/json.h"
#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestIndex = size_t{16} << 20;
constexpr size_t kMostShards = 10'000;

// Shard file -> the names of its tensors, from {"weight_map": {"tensor": "file", ...}}.
std::map<std::string, std::vector<std::string>> parse_index(const FileBytes& file) {
  const std::string& path = file.path();
  if (file.bytes().size() > kLongestIndex)
    fail(fmt::format("is {} bytes long; an index has at most {}", file.bytes().size(),
                     kLongestIndex),
         path, "give the weights' own file or index");
  const auto root = parse_json(file.text());
  if (root.is_discarded()) fail("is not valid JSON", path, "fetch the index again");
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    fail("has no object 'weight_map', so it is no index of a sharded checkpoint", path,
         "give the weights' own file, its *.index.json, or the folder around it");
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, value] : root["weight_map"].items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || shard == "." || shard == ".." ||
        shard.find_first_of("/\\") != shard.npos || shard.find('\0') != shard.npos)
      fail(fmt::format("should lie in a file beside the index, not in '{}'", printable(shard)),
           tensor_place(path, name), "repair 'weight_map' in the index");
    shards[shard].push_back(name);
  }
  if (shards.size() > kMostShards)
    fail(fmt::format("names {} files; at most {} are accepted", shards.size(), kMostShards), path,
         "repair 'weight_map' in the index");
  return shards;
}

class ShardedSource : public Checkpoint::Source {
 public:
  explicit ShardedSource(const FilePointer& index) {
    const fs::path folder = fs::path(index->path()).parent_path();
    for (const auto& [shard, names] : parse_index(*index)) {
      const FilePointer file = FileBytes::map(folder / shard);
      if (file->text().front() == '{')
        fail("is named as a shard but is itself an index", file->path(),
             "repair 'weight_map' in the index");
      shards_.push_back(open_source(file));
      take_names(names, file->path(), index->path());
      files.push_back(file);
    }
    if (!shards_.empty()) format = shards_.front()->format + " (sharded)";
  }

  void read(size_t index, float* out) const override {
    shards_[home_[index].shard]->read(home_[index].index, out);
  }

 private:
  struct Home {
    size_t shard, index;
  };

  // The index decides: what it does not name is not part of the model.
  void take_names(const std::vector<std::string>& names, const std::string& shard_path,
                  const std::string& index_path) {
    const auto& there = shards_.back()->tensors;
    std::unordered_map<std::string_view, size_t> position;
    for (size_t i = 0; i < there.size(); ++i) position.emplace(there[i].name, i);
    for (const std::string& name : names) {
      const auto found = position.find(name);
      if (found == position.end())
        fail(fmt::format("is not there, although {} says so", index_path),
             tensor_place(shard_path, name), "fetch the index and all its shards again");
      tensors.push_back(there[found->second]);
      home_.push_back({shards_.size() - 1, found->second});
    }
  }

  std::vector<SourcePointer> shards_;
  std::vector<Home> home_;  // beside tensors
};

// Files that trainers leave beside the weights.
bool is_companion(const std::string& name) {
  for (const char* start : {"training_args", "optimizer", "scheduler", "rng_state", "scaler"})
    if (name.starts_with(start)) return true;
  return false;
}

bool is_weight_file(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const char* end : {".safetensors", ".pth", ".pth.tar", ".pt", ".ckpt", ".bin", ".npz"})
    if (name.ends_with(end)) return !is_companion(name);
  return false;
}

}  // namespace

SourcePointer open_index(FilePointer file) { return std::make_unique<ShardedSource>(file); }

fs::path find_in_folder(const fs::path& folder) {
  std::error_code error;
  std::set<std::string> indices, weights;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    if (!at->is_regular_file(unreadable)) continue;
    const std::string name = at->path().filename().string();
    if (name.ends_with(".index.json")) indices.insert(name);
    if (is_weight_file(at->path())) weights.insert(name);
  }
  if (error)
    fail(fmt::format("cannot be listed: {}", error.message()), folder.string(),
         "check its permissions");
  for (const std::string& index : indices)
    for (const auto& [shard, names] : parse_index(*FileBytes::map(folder / index)))
      weights.erase(shard);
  weights.insert(indices.begin(), indices.end());
  if (weights.empty())
    fail("holds no .safetensors, .pth, .pth.tar, .pt, .ckpt, .bin or .npz file and no *.index.json",
         folder.string(), "give the file with the weights");
  std::string names;
  for (const std::string& name : weights) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  if (weights.size() > 1)
    fail(fmt::format("holds {} checkpoints: {}", weights.size(), names), folder.string(),
         "give the path of one of them");
  return folder / *weights.begin();
}

}  // namespace fungi
