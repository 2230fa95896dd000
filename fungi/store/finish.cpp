// SPDX-License-Identifier: Apache-2.0
// StoreWriter::finish: the failures in the order of the data set, and the manifest. In place, or as
// the end of a rewrite, which is then moved in place (update.h).
#include "fungi/base/error.h"
#include "fungi/store/session.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

// A file that says the same already is left alone.
void write_if_other(const store::Files& files, const store::Path& path, const std::string& text) {
  if (!std::filesystem::exists(path) || store::read_text(path) != text) files.write(path, text);
}

}  // namespace

StoreManifest StoreWriter::State::current_manifest() const {
  StoreManifest m;
  m.spec = spec;
  m.origins = manifest.origins;
  m.shard_size = layout.shard_size;
  m.classes = layout.classes;
  m.followed_classes = layout.classes.empty() ? 0 : like_classes.size();
  m.state = arrays;
  m.planned = m.complete = true;
  m.samples = layout.samples.size();
  if (options.part) m.part = {*options.part, layout.data_sum()};
  for (size_t k = layout.own.first; k < layout.own_end(); ++k) {
    if (shard_rows[k]) {
      m.shards.push_back({k, *shard_rows[k]});
    } else {
      m.complete = false;
    }
  }
  for (bool f : failed) m.failed += f;
  return m;
}

StoreTotals StoreWriter::State::finish() {
  if (layout.samples.empty()) fail("finish() was called before plan()", "store writer");
  const StoreManifest now = current_manifest();
  StoreTotals totals{
      .samples = layout.own_samples(), .rows = now.rows(), .failed = now.failed, .complete = now.complete};
  for (size_t shard = layout.own.first; shard < layout.own_end(); ++shard) {
    totals.missing += to_compute[shard];
    if (shard_rows[shard]) continue;
    for (size_t i = layout.first(shard); i < layout.last(shard); ++i) {
      const StoreSample& sample = layout.samples[i];
      totals.failed += !sources.find(sample) && failures.find(sample);
    }
  }
  totals.waiting = totals.samples - totals.rows - totals.failed - totals.missing;
  totals.dropped = dropped;
  if (options.dry_run) return totals;

  if (now.complete) {
    std::string text;
    for (size_t i = 0; i < failed.size(); ++i) {
      if (!failed[i]) continue;
      const FailedSample* failure = failures.find(layout.samples[i]);
      FUNGI_ASSERT(failure != nullptr);
      text += store::failed_line(*failure);
    }
    write_if_other(files, target / store::kFailed, text);
    for (const store::Path& file : store::list_failed(target)) files.remove(file);
  } else if (!in_place() || manifest.complete) {
    return totals;  // the store that was there before stays the valid one
  }
  if (in_place()) {
    if (now.complete) {
      for (const store::Path& update : store::list_updates(folder)) files.remove_folder(update);
    }
    write_if_other(files, folder / store::kManifest, to_json(now));
  } else {
    files.write(target / store::kManifest, to_json(now));
    store::mark_commit(files, target, layout.shards());
    store::commit_update(files, folder, target, spec);
    target = folder;
  }
  manifest = now;
  return totals;
}

}  // namespace fungi
