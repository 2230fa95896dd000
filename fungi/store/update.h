// SPDX-License-Identifier: Apache-2.0
// How a store is rewritten without a moment in which a kill could lose it. New shards grow in a
// folder update-N inside the store; once they are all there, update-N/commit.json is written, and
// from then on the only thing left to do is to move the files in place, which may be repeated from
// any point. A shard's rows file is the first of its files to go and, in a rewrite, the first to
// be moved in place: a Store that was opened before tells by it that the shard is another one now.
// What a stopped run had finished of a shard lies in such a folder, too: the rows of a
// rewrite that does not fit are copied where they belong. Internal to the store.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "fungi/store/files.h"
#include "fungi/store/manifest.h"

namespace fungi::store {

// Folders of rewrites, oldest first, and the name for the next one.
std::vector<Path> list_updates(const Path& folder);
Path next_update(const Path& folder);

// The one that waits to be moved in place.
std::optional<Path> pending_commit(const Path& folder);

// Writes the mark, and moves in place what a marked folder holds; `shards` of the store remain.
void mark_commit(const Files& files, const Path& update, size_t shards);
void commit_update(const Files& files, const Path& folder, const Path& update,
                   const StoreSpec& spec);

// Removes the files of all shards numbered `first` and above.
void remove_shards(const Files& files, const Path& folder, const StoreSpec& spec, size_t first);

// Removes the block files of shards without a rows file, as a kill leaves them.
void remove_orphans(const Files& files, const Path& folder, const StoreSpec& spec);

// Error where the folder, which has no manifest, holds anything of somebody else.
void require_free(const Path& folder);

// Removes temporary files of a killed run, here and in the folders below; only such as a writer
// with these blocks makes.
void remove_leftovers(const Files& files, const Path& folder, const StoreSpec& spec);

// Takes everything out of a store but its manifest, which then says that nothing is there.
void empty_store(const Files& files, const Path& folder, StoreManifest manifest);

}  // namespace fungi::store
