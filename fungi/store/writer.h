// SPDX-License-Identifier: Apache-2.0
// Writes a feature store (docs/formats.md) so that a run may be killed at any moment and repeated:
// finished shards stay, and the folder ends up with the bytes of an undisturbed run. One writer per
// folder, one thread at a time.
//
//   StoreWriter writer(folder, spec);       // creates the store, or goes on with it, or throws
//   writer.put_state("kl-head", head);      // what is needed to repeat the run on other data
//   for (const StoreWork& work : writer.plan(samples, classes)) writer.put(work, compute(work));
//   writer.finish();                        // also after an interruption
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/store/manifest.h"
#include "fungi/store/part.h"

namespace fungi {

struct StoreOptions {
  size_t shard_size = 512;  // samples per shard: what a kill can cost, and how many files there are
  bool overwrite = false;   // throw away what the folder holds, in plan(), and start again
  bool prune = false;       // drop rows whose samples have left the data set; otherwise an Error
  // What that Error advises.
  std::string prune_hint = "`prune` drops them; or write to another folder";
  bool retry_failed = false;  // compute recorded failures again; otherwise they stay recorded
  bool dry_run = false;       // check everything and plan, but change nothing on disk
  // For a store that is made of another one, whose rows may have changed under the same key:
  // whether a stored row, told by its id and its first block, or a recorded failure still holds.
  // What does not is computed again.
  std::function<bool(const std::string& id, std::span<const float> first_block)> row_holds = {};
  std::function<bool(const std::string& id, const std::string& reason)> failure_holds = {};
  // Another store: the same settings are required, its state is taken over, and its classes keep
  // their numbers; those that it lacks come after them.
  std::filesystem::path like = {};
  // Only this part of the data set, into a store that merge_parts() joins with the others. plan()
  // wants all samples, but keys only of those that are its own.
  std::optional<StorePart> part = {};
  // What else computes rows of this run: other processes, on other machines perhaps.
  std::vector<StoreOrigin> helpers = {};
  // Called before each change on disk; for tests.
  std::function<void(const char* step)> on_step = {};
};

// One shard to put: indices into the data set of what has to be computed, ascending. Samples whose
// rows are known already are not listed: put() copies them. A shard whose rows are all known has no
// samples, and only waits to be written.
struct StoreWork {
  size_t shard = 0;
  std::vector<size_t> samples;
  size_t copied = 0;  // rows that put() copies
};

struct StoreFailure {
  size_t position = 0;        // in StoreWork::samples
  std::string stage, reason;  // e.g. "decode", "the JPEG ends early"
  std::string hint = {};      // what to do about it
};

// The outcome: for each block of the spec a matrix [work.samples.size(), size()]; rows named in
// `failures` and `undone` are ignored; without samples there may be no blocks. A row that holds a
// value which is not finite (or too large for float16) becomes a failure of the stage "store".
struct StoreRows {
  std::vector<Matrix<float>> blocks;
  std::vector<StoreFailure> failures;
  std::vector<size_t> undone = {};  // positions that a stopped run did not get to, ascending
};

struct StoreTotals {
  // rows: of finished shards; waiting: computed, of others; missing: still to be computed
  size_t samples = 0, rows = 0, failed = 0, missing = 0, waiting = 0;
  bool complete = false;
  size_t dropped = 0;  // rows of samples that have left the data set
};

// The manifest of a store that is to be followed (StoreOptions::like). Error where there is none,
// or where it may not be read.
StoreManifest followed_manifest(const std::filesystem::path& folder);

// A folder that holds a store keeps it as it is until plan() has found nothing to refuse.
// Where other processes put shards of a store that this one has opened (member_writer.h).
struct MemberPlace {
  std::filesystem::path folder;
  size_t shard_size = 0;
  std::vector<std::string> first_classes;  // their numbers come first
};

class StoreWriter {
 public:
  // Errors: a folder that holds something else, other settings, another writer at work, a disk that
  // refuses. A complete store that cannot be written to is refused by plan(), if it has to change.
  StoreWriter(std::filesystem::path folder, StoreSpec spec, StoreOptions options = {});
  StoreWriter(StoreWriter&&) noexcept;
  ~StoreWriter();  // leaves the folder as it is; what was put stays

  // State is written by plan() and fixed from then on: a resumed store, or one made with `like`,
  // has it from the start, and putting something else under the same name is then an Error.
  std::vector<std::string> state_names() const;
  bool has_state(std::string_view name) const;
  Matrix<float> state(std::string_view name) const;
  void put_state(const std::string& name, View<const float> values);

  // Compares the data set with what is there and returns the shards that have to be put, those
  // without samples first. Rows of a data set that grew, shrank (prune) or was reordered are reused
  // and rewritten in the new order; the old store stays valid until finish().
  std::vector<StoreWork> plan(std::vector<StoreSample> samples, std::vector<std::string> classes);
  size_t dropped() const;  // rows that plan() found to have left the data set (prune)

  // Writes one shard of the plan, with its samples as plan() listed them; with samples undone, what
  // is there of it, for the plan() of the next run to take up. After an Error (disk full) nothing
  // written before is lost, and put may be tried again. Returns the failures that were recorded:
  // those of `rows`, and samples whose values cannot be stored.
  std::vector<StoreFailure> put(const StoreWork& work, const StoreRows& rows);

  // For shards of the plan that other processes compute: where they go, from plan() on; whether
  // all of a shard is to be computed, so that it can be written there; and that it was: takes it
  // up, like put(), with the failures that its writer told. Error where the files cannot be seen.
  MemberPlace member_place() const;
  bool is_whole(const StoreWork& work) const;
  std::vector<StoreFailure> record(const StoreWork& work, std::vector<StoreFailure> failures);

  // Writes failures and manifest; complete only when every shard has been put.
  StoreTotals finish();

 private:
  friend class MemberWriter;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
