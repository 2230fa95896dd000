// SPDX-License-Identifier: Apache-2.0
// What a StoreWriter knows while it works: the data set cut into shards (Layout), rows that exist
// somewhere already (Sources), and the writer's own state. Internal to the store.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fungi/store/files.h"
#include "fungi/store/shards.h"
#include "fungi/store/writer.h"

namespace fungi::store {

// The data set in its order, cut into shards of `shard_size` consecutive samples.
struct Layout {
  std::vector<StoreSample> samples;
  std::vector<std::string> classes;
  size_t shard_size = 1;

  // Nothing here may overflow, however large a shard may be.
  size_t shards() const { return samples.size() / shard_size + (samples.size() % shard_size != 0); }
  size_t first(size_t shard) const { return shard * shard_size; }
  size_t last(size_t shard) const {
    return first(shard) + std::min(shard_size, samples.size() - first(shard));
  }
  std::pair<size_t, size_t> own{0, size_t(-1)};  // shards of this part: first, one past the last

  bool is_own(size_t shard) const { return shard >= own.first && shard < own.second; }
  size_t own_end() const { return std::min(own.second, shards()); }
  size_t own_samples() const {
    const size_t end = own_end();
    return end > own.first ? last(end - 1) - first(own.first) : 0;
  }
  // The sum in the manifest of a part.
  std::string data_sum() const { return fungi::data_sum(samples, classes, shard_size); }

  // What its line in the rows file says; a sample without a key keeps the one stored before.
  Row row(size_t sample, const std::string& stored_key) const;

  // Labels by class name in the numbers of `first`, whose classes come first; the others follow.
  void number_classes_after(const std::vector<std::string>& first);

  // Error: no samples, an id twice or empty, a label without class, too many shards.
  void require_valid() const;
};

// Whether a row or failure stored under `key` still belongs to the sample's content. A sample that
// cannot be looked at (its disk is not there today) is no reason to throw a row away.
bool same_content(const StoreSample& sample, const std::string& key);

// Failures by sample id. A recorded failure counts for a sample only while the content is the same;
// those of other contents stand beside it, for the old file may come back.
class Failures {
 public:
  void add(FailedSample sample) { by_id_[sample.id].push_back(std::move(sample)); }
  const FailedSample* find(const StoreSample& sample) const;  // the last one

 private:
  std::unordered_map<std::string, std::vector<FailedSample>> by_id_;
};

// Whether these rows, with the recorded failures, are exactly what the layout wants in this shard.
bool matches(const Layout& layout, size_t shard, const std::vector<Row>& rows,
             const Failures& failures);

// Rows of shards that cannot stay as they are, to be copied into new ones.
class Sources {
 public:
  struct Location {
    size_t folder, shard, row;
    std::string key;
  };
  void add(const Path& folder, size_t shard, const std::vector<Row>& rows);
  const Location* find(const StoreSample& sample) const;
  void read(const Location& location, const StoreBlock& block, float* out);

 private:
  struct Open {
    size_t folder, shard;
    BlockFile file;
  };
  std::vector<Path> folders_;
  std::unordered_map<std::string, Location> by_id_;
  // By block. Rows mostly come in order, so that one open file for each is enough.
  std::unordered_map<std::string, Open> open_;
};

}  // namespace fungi::store

namespace fungi {

struct StoreWriter::State {
  std::filesystem::path folder;
  StoreSpec spec;
  StoreOptions options;
  store::Files files;
  store::Lock lock;
  StoreManifest manifest;                 // the folder's own, as it stands on disk
  std::vector<StoreState> arrays;         // state: the manifest's, or what was put before plan()
  StoreOrigin origin;                     // of this run
  std::vector<std::string> like_classes;  // of options.like
  std::optional<StoreManifest> replaced;  // of a store that begin() has to empty
  std::map<std::string, Matrix<float>> fresh;  // state that was put and is not written yet

  // From plan() on.
  store::Layout layout;
  std::filesystem::path target;  // where new shards go: the folder itself, or a rewrite beside it
  std::vector<std::optional<size_t>> shard_rows;  // of each shard; empty: not there yet
  std::vector<bool> failed;                       // by sample, for shards that are there
  std::vector<size_t> to_compute;                 // by shard: how many samples
  store::Failures failures;
  store::Sources sources;
  size_t dropped = 0;  // rows that have left the data set

  bool member = false;  // a MemberWriter: failures go to files of their own

  bool in_place() const { return target == folder; }

  void open();                                       // writer.cpp
  void take_over_state(const StoreManifest& other);  // of options.like
  void take_part();                                  // plan.cpp
  void begin();  // a new store on disk, in place of what the folder held
  std::vector<StoreWork> plan(std::vector<StoreSample> samples,
                              std::vector<std::string> classes);  // plan.cpp
  void find_shards();  // fills shard_rows, sources, failures, target
  void mark_shard(size_t shard, const std::vector<store::Row>& rows);
  std::vector<size_t> missing(size_t shard) const;  // its samples that have to be computed
  std::vector<StoreFailure> put(const StoreWork& work, const StoreRows& rows);  // put.cpp
  std::vector<StoreFailure> write_shard(size_t shard, const StoreWork& work, const StoreRows& rows);
  std::vector<StoreFailure> record(const StoreWork& work, std::vector<StoreFailure> failures_now);
  StoreManifest current_manifest() const;  // finish.cpp
  StoreTotals finish();
};

}  // namespace fungi
