// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/store/files.h"
#include "fungi/store/shards.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

struct Part {
  fs::path folder;
  StoreManifest manifest;
  std::string place() const { return folder.string(); }
  StorePart part() const { return manifest.part->part; }
};

Part read_part(const fs::path& folder) {
  const fs::path file = folder / store::kManifest;
  if (!fs::is_regular_file(file))
    fail("expected a store that holds a part, found no manifest.json", folder.string(),
         "name the folders that `extract` with `part` wrote");
  Part p{folder, parse_manifest(store::read_text(file), file.string())};
  if (!p.manifest.part)
    fail("this store holds no part of a data set", p.place(),
         "name the folders that `extract` with `part` wrote");
  if (!p.manifest.complete || store::pending_commit(folder))
    fail(fmt::format("part {} is not finished", to_string(p.part())), p.place(),
         "repeat its command: it goes on where it stopped");
  return p;
}

void require_all(const std::vector<Part>& parts) {
  const size_t count = parts[0].part().count;
  std::vector<const Part*> by_index(count);
  for (const Part& p : parts) {
    if (p.part().count != count)
      fail(fmt::format("this is part {}, and {} is part {}", to_string(p.part()),
                       parts[0].place(), to_string(parts[0].part())),
           p.place(), "the parts of one data set have one number of parts");
    const Part*& held = by_index[p.part().index - 1];
    if (held)
      fail(fmt::format("part {} is given twice, also by {}", to_string(p.part()), held->place()),
           p.place(), "leave out one of them");
    held = &p;
  }
  std::vector<size_t> missing;
  for (size_t i = 0; i < count; ++i)
    if (!by_index[i]) missing.push_back(i + 1);
  constexpr size_t kNamed = 10;
  if (missing.empty()) return;
  const size_t named = std::min(kNamed, missing.size());
  fail(fmt::format("{} of {} parts are missing: {}{}", missing.size(), count,
                   fmt::join(missing.begin(), missing.begin() + ptrdiff_t(named), ", "),
                   missing.size() > named ? ", ..." : ""),
       "merge", "name the folders of all parts");
}

constexpr char kAnew[] = "extract one of the two anew, with the settings of the other";

void require_same_data(const Part& first, const Part& other) {
  const StoreManifest &a = first.manifest, &b = other.manifest;
  const auto differ = [&](const char* what) {
    fail(fmt::format("{} are not those of {}", what, first.place()), other.place(), kAnew);
  };
  if (a.part->data != b.part->data || a.samples != b.samples || a.shard_size != b.shard_size)
    differ("the samples of the data set, their labels or the size of shards");
  if (a.classes != b.classes || a.followed_classes != b.followed_classes)
    differ("the classes");
}

void require_same_state(const Part& first, const Part& other) {
  const auto same = [](const StoreState& x, const StoreState& y) {
    return x.name == y.name && x.rows == y.rows && x.cols == y.cols && x.checksum == y.checksum;
  };
  const auto &a = first.manifest.state, &b = other.manifest.state;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same);
  if (x == a.end() && y == b.end()) return;
  fail(fmt::format("the state '{}' is not that of {}", (x == a.end() ? *y : *x).name,
                   first.place()),
       other.place(),
       "both were found on samples that differ, or by other instructions: extract one of the two "
       "anew");
}

std::string origins_of(const StoreManifest& m) {
  std::vector<std::string> all;
  for (const StoreOrigin& o : m.origins) all.push_back(fmt::format("{} on {}", o.version, o.isa));
  return fmt::format("fungi {}", fmt::join(all, ", "));
}

// Parts without rows have no origin.
void require_same_origins(const Part& first, const Part& other) {
  const auto &a = first.manifest.origins, &b = other.manifest.origins;
  if (b.empty() || (a == b && a.size() == 1)) return;
  fail(fmt::format("rows were made by {}, those of {} by {}: the bytes would not be those of one "
                   "machine",
                   origins_of(other.manifest), first.place(), origins_of(first.manifest)),
       other.place(),
       "compute all parts with the same version and the same instructions (FUNGI_ISA chooses), or "
       "pass `allow_mixed`, which is recorded");
}

std::vector<Part> read_parts(std::span<const fs::path> folders, const MergeOptions& options) {
  if (folders.empty()) fail("expected the folders of parts, found none", "merge");
  std::vector<Part> parts;
  for (const fs::path& folder : folders) parts.push_back(read_part(folder));
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.part().index < b.part().index;
  });
  const auto with_rows = std::find_if(parts.begin(), parts.end(), [](const Part& p) {
    return !p.manifest.origins.empty();
  });
  for (const Part& p : parts) {
    options.require_same(parts[0].manifest.spec, p.manifest.spec, p.place(), kAnew);
    require_same_data(parts[0], p);
    require_same_state(parts[0], p);
    if (!options.allow_mixed && with_rows != parts.end()) require_same_origins(*with_rows, p);
  }
  require_all(parts);
  return parts;
}

StoreManifest joined(const std::vector<Part>& parts) {
  StoreManifest m = parts[0].manifest;
  m.part.reset();
  m.origins.clear(), m.shards.clear(), m.failed = 0;
  for (const Part& p : parts) {
    const StoreManifest& own = p.manifest;
    m.shards.insert(m.shards.end(), own.shards.begin(), own.shards.end());
    m.failed += own.failed;
    for (const StoreOrigin& o : own.origins)
      if (std::find(m.origins.begin(), m.origins.end(), o) == m.origins.end())
        m.origins.push_back(o);
  }
  for (size_t i = 0; i < m.shards.size(); ++i)
    if (m.shards[i].index != i)
      fail(fmt::format("shard {} is in none of the parts, or in two", i), "merge",
           "the manifest of a part was changed: extract that part anew");
  if (m.rows() + m.failed != m.samples)
    fail(fmt::format("the parts hold {} rows and {} failures of {} samples", m.rows(), m.failed,
                     m.samples),
         "merge", "the manifest of a part was changed: extract that part anew");
  return m;
}

// What an earlier merge of the same parts may have left.
StoreManifest unfinished(StoreManifest m) {
  m.complete = false;
  m.shards.clear(), m.failed = 0;
  return m;
}

void require_free(const fs::path& folder, const StoreManifest& whole, bool overwrite) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder))
    fail("expected a folder, found a file", folder.string(), "choose another name for the store");
  const fs::path manifest = folder / store::kManifest;
  if (!fs::exists(manifest)) return store::require_free(folder);
  const std::string text = store::read_text(manifest);
  if (overwrite || text == to_json(whole) || text == to_json(unfinished(whole))) return;
  parse_manifest(text, manifest.string());
  fail("the folder holds a store that these parts would not make", folder.string(),
       "choose another folder, or pass `overwrite`");
}

}  // namespace

StoreTotals merge_parts(std::span<const fs::path> folders, const fs::path& folder,
                        const MergeOptions& options) {
  return store::guarded([&] {
    const std::vector<Part> parts = read_parts(folders, options);
    const StoreManifest whole = joined(parts);
    const std::string text = to_json(whole), begun = to_json(unfinished(whole));
    const fs::path manifest = folder / store::kManifest;
    StoreTotals totals{.samples = whole.samples, .rows = whole.rows(), .failed = whole.failed};
    require_free(folder, whole, options.overwrite);
    if (options.dry_run) return store::require_writable(folder), totals;

    const store::Files files(options.on_step);
    files.make_folder(folder);
    const store::Lock lock(folder / store::kLock);
    require_free(folder, whole, options.overwrite);
    if (fs::exists(manifest)) {
      const std::string held = store::read_text(manifest);
      const StoreManifest old = parse_manifest(held, manifest.string());
      if (held != text && held != begun) store::empty_store(files, folder, old);
      store::remove_leftovers(files, folder, old.spec);
    }
    files.write(manifest, begun);
    if (!whole.state.empty()) files.make_folder(folder / store::kState);
    for (const StoreState& state : whole.state) {
      store::read_state(parts[0].folder, state);  // an Error when it is damaged
      const std::string file = store::state_file(state.name);
      files.link(parts[0].folder / file, folder / file);
    }
    std::string failures;
    size_t done = 0;
    for (const Part& p : parts) {
      for (const StoreShard& shard : p.manifest.shards) {
        if (options.stop && options.stop->load()) {
          totals.missing = totals.samples - done * whole.shard_size;
          return totals;
        }
        if (!store::shard_is_whole(p.folder, whole.spec, shard.index, shard.rows))
          fail(fmt::format("shard {} is not whole", shard.index), p.place(), store::kRepeat);
        files.remove(folder / store::rows_file(shard.index));  // no rows beside other blocks
        for (const StoreBlock& block : whole.spec.blocks) {
          const std::string file = store::block_file(block.name, shard.index);
          files.link(p.folder / file, folder / file);
        }
        const std::string rows = store::rows_file(shard.index);
        files.link(p.folder / rows, folder / rows);
        if (options.progress) options.progress(++done, whole.shards.size());
      }
      for (const FailedSample& failed : store::read_failed(p.folder / store::kFailed))
        failures += store::failed_line(failed);
    }
    files.write(folder / store::kFailed, failures);
    files.write(manifest, text);
    totals.complete = true;
    return totals;
  });
}

}  // namespace fungi
