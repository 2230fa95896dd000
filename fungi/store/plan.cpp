// SPDX-License-Identifier: Apache-2.0
// StoreWriter::plan: which shards may stay, which rows can be copied, what has to be computed, and
// where new shards go. If all shards that are there fit the data set, new ones are added beside
// them; otherwise the store is rewritten in a folder of its own (update.h), so that the old
// one stays whole until the new one is.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/store/session.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

using store::Row;

struct Loose {
  size_t shard;
  std::vector<Row> rows;
};

void mark_stale(std::vector<Row>& rows, const store::Path& file, const StoreOptions& options) {
  if (!options.row_holds) return;
  const store::BlockFile block = store::open_block(file);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].stale = !options.row_holds(rows[i].id, {block.values.row(i), block.values.cols});
}

// Goes through the shards of one folder: use(shard, rows) for those that are whole. The answer: the
// rows files of the others, to be forgotten.
template <class Use>
std::vector<store::Path> for_each_whole_shard(const store::Path& folder, const StoreSpec& spec,
                                              const StoreOptions& options, const Use& use) {
  std::vector<store::Path> broken;
  for (size_t shard : store::list_shards(folder)) {
    std::vector<Row> rows = store::read_rows(folder / store::rows_file(shard), true);
    if (store::shard_is_whole(folder, spec, shard, rows.size())) {
      mark_stale(rows, folder / store::block_file(spec.blocks[0].name, shard), options);
      use(shard, std::move(rows));
    } else {
      broken.push_back(folder / store::rows_file(shard));
    }
  }
  return broken;
}

// A disk that lost power may hold shards that are not whole. They are computed again, and until
// that is done no rows file may stand beside block files of another make.
void forget(const store::Files& files, const std::vector<store::Path>& broken) {
  for (const store::Path& rows : broken) files.remove(rows);
}

// Rows of samples that are no more.
size_t lost_rows(const store::Layout& layout, const std::vector<Loose>& loose,
                 std::string& example) {
  if (loose.empty()) return 0;
  std::unordered_set<std::string_view> wanted;
  for (const StoreSample& sample : layout.samples) wanted.insert(sample.id);
  size_t lost = 0;
  for (const Loose& shard : loose) {
    for (const Row& row : shard.rows) {
      if (wanted.contains(row.id)) continue;
      if (lost++ == 0) example = row.id;
    }
  }
  return lost;
}

// Whether all these rows are among the sources already, or in shards that stay.
bool all_known(const store::Sources& sources, const std::unordered_set<std::string_view>& settled,
               const std::vector<Loose>& shards) {
  for (const Loose& shard : shards) {
    for (const Row& row : shard.rows) {
      if (!row.stale && !settled.contains(row.id) && !sources.find({row.id, row.label, row.key}))
        return false;
    }
  }
  return true;
}

}  // namespace

void StoreWriter::State::mark_shard(size_t shard, const std::vector<Row>& rows) {
  size_t next = 0;
  for (size_t i = layout.first(shard); i < layout.last(shard); ++i) {
    const bool there = next < rows.size() && rows[next].id == layout.samples[i].id;
    next += there;
    failed[i] = !there;
  }
  shard_rows[shard] = rows.size();
}

void StoreWriter::State::find_shards() {
  shard_rows.assign(layout.shards(), std::nullopt);
  failed.assign(layout.samples.size(), false);
  target = folder;
  if (!manifest.planned) return;  // a new store

  const auto add_failures = [&](const store::Path& from) {
    if (options.retry_failed) return;
    for (auto& sample : store::read_failed(from / store::kFailed))
      if (!options.failure_holds || options.failure_holds(sample.id, sample.reason))
        failures.add(std::move(sample));
  };
  add_failures(folder);
  std::vector<Loose> loose;
  const std::vector<store::Path> broken =
      for_each_whole_shard(folder, spec, options, [&](size_t shard, std::vector<Row> rows) {
        if (store::matches(layout, shard, rows, failures)) {
          mark_shard(shard, rows);
        } else {
          loose.push_back({shard, std::move(rows)});
        }
      });
  std::string example;
  dropped = lost_rows(layout, loose, example);
  if (dropped > 0 && !options.prune) {
    fail(fmt::format("the store holds {} samples that are not among the {} asked for, e.g. '{}'",
                     dropped, layout.samples.size(), example),
         folder.string(), options.prune_hint);
  }
  forget(files, broken);
  for (const Loose& shard : loose) sources.add(folder, shard.shard, shard.rows);
  if (!loose.empty()) target.clear();  // not in place: it is found below

  // An unfinished rewrite is gone on with if all that it holds still fits; the rows of others are
  // used. One that has no row of its own goes: each retry that fails again would leave one more.
  std::unordered_set<std::string_view> settled;  // samples of shards that are as they should be
  const auto settle = [&](size_t shard) {
    for (size_t i = layout.first(shard); i < layout.last(shard); ++i)
      settled.insert(layout.samples[i].id);
  };
  const std::vector<store::Path> updates = store::list_updates(folder);
  for (size_t shard = 0; shard < layout.shards() && !updates.empty(); ++shard)
    if (shard_rows[shard]) settle(shard);
  for (const store::Path& update : updates) {
    add_failures(update);
    std::vector<Loose> held;
    bool fits = true;
    forget(files,
           for_each_whole_shard(update, spec, options, [&](size_t shard, std::vector<Row> rows) {
             fits = fits && store::matches(layout, shard, rows, failures);
             held.push_back({shard, std::move(rows)});
           }));
    if (fits && target.empty()) {
      target = update;
      for (const Loose& shard : held) mark_shard(shard.shard, shard.rows), settle(shard.shard);
    } else if (all_known(sources, settled, held)) {
      files.remove_folder(update);
    } else {
      for (const Loose& shard : held) sources.add(update, shard.shard, shard.rows);
    }
  }
  if (target.empty()) target = store::next_update(folder);
}

std::vector<size_t> StoreWriter::State::missing(size_t shard) const {
  std::vector<size_t> samples;
  for (size_t i = layout.first(shard); i < layout.last(shard); ++i) {
    const StoreSample& sample = layout.samples[i];
    if (!sources.find(sample) && !failures.find(sample)) samples.push_back(i);
  }
  return samples;
}

std::vector<StoreWork> StoreWriter::State::plan(std::vector<StoreSample> samples,
                                                std::vector<std::string> classes) {
  if (!layout.samples.empty()) fail("plan() was called twice", "store writer");
  layout = {std::move(samples), std::move(classes), options.shard_size};
  layout.require_valid();
  if (options.like.empty())  // a repeated command may leave it out
    like_classes.assign(manifest.classes.begin(),
                        manifest.classes.begin() + std::ptrdiff_t(manifest.followed_classes));
  layout.number_classes_after(like_classes);
  find_shards();

  std::vector<StoreWork> works, ready;  // ready: the rows all exist somewhere
  to_compute.assign(layout.shards(), 0);
  for (size_t shard = 0; shard < layout.shards(); ++shard) {
    if (shard_rows[shard]) continue;
    StoreWork work{shard, missing(shard)};
    to_compute[shard] = work.samples.size();
    for (size_t i = layout.first(shard); i < layout.last(shard); ++i)
      work.copied += sources.find(layout.samples[i]) != nullptr;
    (work.samples.empty() ? ready : works).push_back(std::move(work));
  }
  auto& origins = manifest.origins;
  if (!works.empty() && std::find(origins.begin(), origins.end(), origin) == origins.end()) {
    origins.push_back(origin);
  }
  // They may be many, and are put like the others: the caller can tell of them, and stop between.
  works.insert(works.begin(), std::make_move_iterator(ready.begin()),
               std::make_move_iterator(ready.end()));
  if (options.dry_run) {  // also where the store cannot be written to
    const StoreManifest now = current_manifest();
    const bool as_it_is = works.empty() && in_place() && store::list_updates(folder).empty() &&
                          now.classes == manifest.classes && now.samples == manifest.samples &&
                          store::parse(now.spec.settings, "settings") ==
                              store::parse(manifest.spec.settings, "settings");
    if (!as_it_is) store::require_writable(folder);
    return works;
  }

  if (!manifest.planned) begin();  // from here on only the disk can refuse
  if (!in_place()) {
    files.make_folder(target);
  } else if (!manifest.complete) {
    manifest = current_manifest();
    manifest.complete = false;
    files.write(folder / store::kManifest, to_json(manifest));
  }
  // Half a shard of a killed run, perhaps of another order or content: it must not be moved over
  // the good shard of that number, nor stay behind beyond the last one.
  store::remove_orphans(files, target, spec);
  // A kill may have cut the last line; what is appended must not be glued to it.
  if (const auto path = target / store::kFailed; std::filesystem::exists(path)) {
    std::string text;
    for (const auto& sample : store::read_failed(path)) text += store::failed_line(sample);
    if (text != store::read_text(path)) files.write(path, text);
  }
  return works;
}

}  // namespace fungi
