// SPDX-License-Identifier: Apache-2.0
// StoreWriter::plan: which shards may stay, which rows can be copied, what has to be computed, and
// where new shards go. If all shards that are there fit the data set, new ones are added beside
// them; otherwise the store is rewritten in a folder of its own (update.h), so that the old
// one stays whole until the new one is.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
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

// What lies in one folder of shards.
struct Held {
  store::Path folder;
  std::vector<Loose> shards;        // those that are whole
  std::vector<store::Path> broken;  // rows files of the others, to be forgotten
};

Held read_held(const store::Path& folder, const StoreSpec& spec, const StoreOptions& options) {
  Held held{folder, {}, {}};
  for (size_t shard : store::list_shards(folder)) {
    std::vector<Row> rows = store::read_rows(folder / store::rows_file(shard), true);
    if (store::shard_is_whole(folder, spec, shard, rows.size())) {
      mark_stale(rows, folder / store::block_file(spec.blocks[0].name, shard), options);
      held.shards.push_back({shard, std::move(rows)});
    } else {
      held.broken.push_back(folder / store::rows_file(shard));
    }
  }
  return held;
}

// A disk that lost power may hold shards that are not whole. They are computed again, and until
// that is done no rows file may stand beside block files of another make.
void forget(const store::Files& files, const std::vector<store::Path>& broken) {
  for (const store::Path& rows : broken) files.remove(rows);
}

// Rows of samples that are no more, also those of a rewrite that was never finished.
size_t lost_rows(const store::Layout& layout, const std::vector<Held>& all, std::string& example) {
  std::unordered_set<std::string_view> wanted, lost;
  for (const StoreSample& sample : layout.samples) wanted.insert(sample.id);
  for (const Held& held : all) {
    for (const Loose& shard : held.shards) {
      for (const Row& row : shard.rows) {
        if (wanted.contains(row.id) || !lost.insert(row.id).second) continue;
        if (lost.size() == 1) example = row.id;
      }
    }
  }
  return lost.size();
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
    for (auto& sample : store::read_all_failed(from))
      if (!options.failure_holds || options.failure_holds(sample.id, sample.reason))
        failures.add(std::move(sample));
  };
  add_failures(folder);
  std::vector<Held> all{read_held(folder, spec, options)};
  for (const store::Path& update : store::list_updates(folder))
    all.push_back(read_held(update, spec, options));
  std::string example;
  dropped = lost_rows(layout, all, example);
  if (dropped > 0 && !options.prune) {
    fail(fmt::format("the store holds {} samples that are not among the {} asked for, e.g. '{}'",
                     dropped, layout.samples.size(), example),
         folder.string(), options.prune_hint);
  }
  for (const Held& held : all) forget(files, held.broken);
  for (const Loose& shard : all.front().shards) {
    if (store::matches(layout, shard.shard, shard.rows, failures)) {
      mark_shard(shard.shard, shard.rows);
    } else {
      sources.add(folder, shard.shard, shard.rows);
      target.clear();  // not in place: it is found below
    }
  }

  // An unfinished rewrite is gone on with if all that it holds still fits; the rows of others are
  // used. One that has no row of its own goes: each retry that fails again would leave one more.
  std::unordered_set<std::string_view> settled;  // samples of shards that are as they should be
  const auto settle = [&](size_t shard) {
    for (size_t i = layout.first(shard); i < layout.last(shard); ++i)
      settled.insert(layout.samples[i].id);
  };
  for (size_t shard = 0; shard < layout.shards() && all.size() > 1; ++shard)
    if (shard_rows[shard]) settle(shard);
  for (const Held& update : std::span(all).subspan(1)) {
    add_failures(update.folder);
    const bool fits =
        std::all_of(update.shards.begin(), update.shards.end(), [&](const Loose& shard) {
          return store::matches(layout, shard.shard, shard.rows, failures);
        });
    if (fits && target.empty()) {
      target = update.folder;
      for (const Loose& shard : update.shards)
        mark_shard(shard.shard, shard.rows), settle(shard.shard);
    } else if (all_known(sources, settled, update.shards)) {
      files.remove_folder(update.folder);
    } else {
      for (const Loose& shard : update.shards) sources.add(update.folder, shard.shard, shard.rows);
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

void StoreWriter::State::take_part() {
  const std::vector<size_t> bounds =
      share_shards(layout.samples, layout.shard_size, options.part->count);
  layout.own = {bounds[options.part->index - 1], bounds[options.part->index]};
  if (manifest.planned && manifest.part && manifest.part->data != layout.data_sum())
    fail(fmt::format("the data set, or the size of shards, is not that with which part {} was begun",
                     to_string(*options.part)),
         folder.string(),
         "which samples are a part's own depends on both: repeat the command as it was, or pass "
         "`overwrite` to begin all parts anew");
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
  if (options.part) take_part();
  find_shards();

  std::vector<StoreWork> works, ready;  // ready: the rows all exist somewhere
  to_compute.assign(layout.shards(), 0);
  for (size_t shard = layout.own.first; shard < layout.own_end(); ++shard) {
    if (shard_rows[shard]) continue;
    StoreWork work{shard, missing(shard)};
    to_compute[shard] = work.samples.size();
    for (size_t i = layout.first(shard); i < layout.last(shard); ++i)
      work.copied += sources.find(layout.samples[i]) != nullptr;
    (work.samples.empty() ? ready : works).push_back(std::move(work));
  }
  auto& origins = manifest.origins;
  std::vector<StoreOrigin> computing{origin};
  computing.insert(computing.end(), options.helpers.begin(), options.helpers.end());
  for (const StoreOrigin& one : computing)
    if (!works.empty() && std::find(origins.begin(), origins.end(), one) == origins.end())
      origins.push_back(one);
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
