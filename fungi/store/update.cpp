// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fungi/base/error.h"
#include "fungi/store/shards.h"
#include "fungi/store/text.h"

namespace fungi::store {
namespace {

constexpr std::string_view kUpdate = "update-";

// 0 when the name is not that of a rewrite.
size_t update_number(const Path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kUpdate) || name.size() > kUpdate.size() + 9) return 0;
  size_t number = 0;
  for (char c : name.substr(kUpdate.size())) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<size_t>(c - '0');
  }
  return number;
}

// Sorted, so that every run does the same things in the same order.
std::vector<Path> entries(const Path& folder) {
  std::vector<Path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<Path> list_updates(const Path& folder) {
  std::vector<Path> updates;
  for (const Path& path : entries(folder)) {
    if (update_number(path) > 0 && std::filesystem::is_directory(path)) updates.push_back(path);
  }
  std::sort(updates.begin(), updates.end(),
            [](const Path& a, const Path& b) { return update_number(a) < update_number(b); });
  return updates;
}

Path next_update(const Path& folder) {
  const std::vector<Path> updates = list_updates(folder);
  return folder /
         fmt::format("{}{}", kUpdate, updates.empty() ? 1 : update_number(updates.back()) + 1);
}

std::optional<Path> pending_commit(const Path& folder) {
  for (const Path& update : list_updates(folder)) {
    if (std::filesystem::exists(update / kCommit)) return update;
  }
  return std::nullopt;
}

void mark_commit(const Files& files, const Path& update, size_t shards) {
  files.write(update / kCommit, dump(Json{{"shards", shards}}) + "\n");
}

void commit_update(const Files& files, const Path& folder, const Path& update,
                   const StoreSpec& spec) {
  const std::string place = (update / kCommit).string();
  const Json mark = parse(read_text(place), place);
  if (!mark.is_object() || !mark.contains("shards") || !mark["shards"].is_number_unsigned()) {
    fail("expected the number of shards", place);
  }
  const auto move = [&](bool rows) {
    for (const Path& path : entries(update)) {
      const Path name = path.filename();
      const bool is_rows = shard_number(name.native(), "rows", ".jsonl") != kMaxShards;
      if (name != kCommit && name != kManifest && is_rows == rows) files.move(path, folder / name);
    }
  };
  move(true);  // first: see update.h
  move(false);
  remove_shards(files, folder, spec, mark["shards"].get<size_t>());
  if (std::filesystem::exists(update / kManifest))
    files.move(update / kManifest, folder / kManifest);
  // Older rewrites go first: were the mark the first to go, a kill would leave them to be found.
  for (const Path& other : list_updates(folder)) {
    if (other != update) files.remove_folder(other);
  }
  files.remove_folder(update);
}

void remove_shards(const Files& files, const Path& folder, const StoreSpec& spec, size_t first) {
  std::vector<Path> doomed;
  for (const Path& path : entries(folder)) {
    const std::string name = path.filename().string();
    auto beyond = [&](std::string_view stem, std::string_view suffix) {
      const size_t number = shard_number(name, stem, suffix);
      return number != kMaxShards && number >= first;
    };
    const bool rows = beyond("rows", ".jsonl");
    const bool block = std::any_of(spec.blocks.begin(), spec.blocks.end(),
                                   [&](const StoreBlock& b) { return beyond(b.name, ".npy"); });
    if (beyond("failed", ".jsonl")) doomed.push_back(path);
    // The rows file goes first: without it a shard does not count, whatever else is left of it.
    if (rows) files.remove(path);
    if (block) doomed.push_back(path);
  }
  for (const Path& path : doomed) files.remove(path);
}

void remove_orphans(const Files& files, const Path& folder, const StoreSpec& spec) {
  const std::vector<size_t> counted = list_shards(folder);
  for (const Path& path : entries(folder)) {
    for (const StoreBlock& block : spec.blocks) {
      const size_t shard = shard_number(path.filename().string(), block.name, ".npy");
      const bool orphan = !std::binary_search(counted.begin(), counted.end(), shard);
      if (shard != kMaxShards && orphan) files.remove(path);
    }
  }
}

void remove_leftovers(const Files& files, const Path& folder, const StoreSpec& spec) {
  const bool state = folder.filename() == kState;
  for (const Path& path : entries(folder)) {
    const bool inner = path.filename() == kState || update_number(path) > 0;
    if (inner && std::filesystem::is_directory(path)) {
      remove_leftovers(files, path, spec);
    } else if (path.extension() == kTemporary) {
      const std::string name = path.stem().string();
      bool ours = name == kManifest || name == kFailed || name == kCommit;
      ours = ours || (state && Path(name).extension() == ".npy");
      ours = ours || shard_number(name, "rows", ".jsonl") != kMaxShards;
      ours = ours || shard_number(name, "failed", ".jsonl") != kMaxShards;
      for (const StoreBlock& block : spec.blocks) {
        ours = ours || shard_number(name, block.name, ".npy") != kMaxShards;
      }
      if (ours) files.remove(path);
    }
  }
}

void require_free(const Path& folder) {
  for (const Path& path : entries(folder)) {
    const Path name = path.filename();
    if (name == kLock || name == std::string(kManifest) + kTemporary) continue;
    fail(fmt::format("the folder holds '{}' and no manifest.json: it is not a feature store",
                     name.string()),
         folder.string(), "write to a new or empty folder");
  }
}

void empty_store(const Files& files, const Path& folder, StoreManifest manifest) {
  const StoreSpec spec = manifest.spec;
  manifest.planned = manifest.complete = false;
  manifest.samples = manifest.failed = 0;
  manifest.shards.clear();
  manifest.state.clear();
  files.write(folder / kManifest, to_json(manifest));
  for (const Path& update : list_updates(folder)) {
    files.remove(update / kCommit);  // first: half a folder must not be moved in place
    files.remove_folder(update);
  }
  remove_shards(files, folder, spec, 0);
  files.remove(folder / kFailed);
  files.remove_folder(folder / kState);
}

}  // namespace fungi::store
