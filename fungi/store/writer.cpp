// SPDX-License-Identifier: Apache-2.0
// StoreWriter: opening (create, go on, or refuse) and state. The rest of a run is in
// plan.cpp, put.cpp and finish.cpp.
#include "fungi/store/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/store/session.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

const StoreState* find_state(const std::vector<StoreState>& arrays, std::string_view name) {
  for (const StoreState& array : arrays) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

StoreManifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / store::kManifest;
  return parse_manifest(store::read_text(path), path.string());
}

}  // namespace

void StoreWriter::State::open() {
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    fail("expected a folder, found a file", folder.string(), "choose another name for the store");
  }
  const fs::path own_manifest = folder / store::kManifest;
  // Looked at before the lock, which would stay behind in a folder of somebody else.
  bool kept = false;  // a complete store: perhaps nothing has to be written, which plan() finds out
  if (fs::exists(own_manifest))
    kept = read_manifest(folder).complete && !options.overwrite;
  else if (fs::exists(folder))
    store::require_free(folder);
  if (kept && !store::is_writable(folder)) {  // e.g. on a medium that is mounted read-only
    options.dry_run = true;
    files = store::Files({}, true);
  }
  if (options.dry_run) {
    if (!kept) store::require_writable(folder);  // it cannot try
  } else {
    files.make_folder(folder);
    lock = store::Lock(folder / store::kLock);
  }
  if (fs::exists(own_manifest)) {
    manifest = read_manifest(folder);
    if (options.overwrite || !manifest.planned) {  // before it is planned nothing could differ
      replaced = std::exchange(manifest, {});
    } else {
      const auto said = [](const auto& part) {
        return part ? "part " + to_string(*part) : std::string("no part");
      };
      const auto stored = manifest.part ? std::optional(manifest.part->part) : std::nullopt;
      if (stored != options.part)
        fail(fmt::format("the store holds {} of a data set, and {} is asked for", said(stored),
                         said(options.part)),
             folder.string(),
             "every part is a store of its own; `merge` joins them, and `overwrite` begins anew");
      spec.require_same(
          manifest.spec, spec, folder.string(),
          "repeat the settings of the store, choose another folder, or pass `overwrite`");
      if (const auto update = store::pending_commit(folder)) {
        if (options.dry_run) {
          store::require_writable(folder);
          fail("an interrupted rewrite has to be finished first", folder.string(),
               "run once without `dry_run`");
        }
        store::commit_update(files, folder, *update, manifest.spec);
        manifest = read_manifest(folder);
      }
      if (!options.dry_run) store::remove_leftovers(files, folder, manifest.spec);
    }
  } else if (fs::exists(folder)) {
    store::require_free(folder);
    if (!options.dry_run) store::remove_leftovers(files, folder, spec);
  }
  arrays = manifest.state;
}

// The manifest comes first: a kill then leaves a store without rows, which the next run begins
// again, whatever else is there.
void StoreWriter::State::begin() {
  if (replaced) {
    store::remove_leftovers(files, folder, replaced->spec);
    store::empty_store(files, folder, *replaced);
  }
  StoreManifest empty;
  empty.spec = spec;
  empty.shard_size = options.shard_size;
  files.write(folder / store::kManifest, to_json(empty));
  if (!arrays.empty()) files.make_folder(folder / store::kState);
  for (const StoreState& array : arrays) {
    const std::string file = store::state_file(array.name);
    files.write(folder / file, options.like.empty()
                                   ? store::block_bytes(fresh.at(array.name), StoreType::float32)
                                   : store::read_text(options.like / file));
  }
  fresh.clear();
}

void StoreWriter::State::take_over_state(const StoreManifest& other) {
  const std::string place = options.like.string();
  for (const StoreState& wanted : other.state) {
    const StoreState* own = find_state(arrays, wanted.name);
    if (manifest.planned && (own == nullptr || own->checksum != wanted.checksum)) {
      fail(fmt::format("the state '{}' differs from that of {}", wanted.name, place),
           folder.string(), "choose another folder, or pass `overwrite`");
    }
    if (manifest.planned) continue;
    store::read_state(options.like, wanted);  // throws when it is damaged
  }
  if (!manifest.planned) arrays = other.state;
}

StoreManifest followed_manifest(const fs::path& folder) {
  std::error_code reason;
  const fs::file_status found = fs::status(folder / store::kManifest, reason);
  if (found.type() == fs::file_type::none)
    fail(fmt::format("the store to follow cannot be looked at: {}", reason.message()),
         folder.string(), "mend the permissions, or check the path");
  if (!fs::is_regular_file(found))
    fail("expected a feature store to follow, found no manifest.json", folder.string(),
         "`like` wants a folder that `extract` wrote");
  return read_manifest(folder);
}

StoreWriter::StoreWriter(fs::path folder, StoreSpec spec, StoreOptions options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  require_valid(spec);
  if (options.shard_size == 0) fail("expected at least 1 sample per shard", "shard size");
  s.folder = folder.lexically_normal();
  s.origin = {FUNGI_VERSION, spec.isa.empty() ? "unknown" : spec.isa};
  s.spec = std::move(spec);
  s.files = store::Files(options.on_step, options.dry_run);
  s.options = std::move(options);
  StoreManifest followed;
  if (!s.options.like.empty()) {  // looked at first: a refusal must not leave an empty store behind
    const std::string place = s.options.like.string();
    std::error_code ignored;  // what does not exist is another folder
    if (fs::equivalent(s.options.like, s.folder, ignored)) {
      fail("a store cannot follow itself", place, "write to another folder, or omit `like`");
    }
    followed = followed_manifest(s.options.like);
    s.spec.require_same(followed.spec, s.spec, place,
                        "repeat the settings of that store, or omit `like`");
    if (!followed.planned) {
      fail("the store to be followed has no state yet", place, "finish its extraction first");
    }
    s.like_classes = followed.classes;
  }
  store::guarded([&] {
    s.open();
    if (!s.options.like.empty()) s.take_over_state(followed);
  });
}

StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter::~StoreWriter() = default;

std::vector<std::string> StoreWriter::state_names() const {
  std::vector<std::string> names;
  for (const StoreState& array : state_->arrays) names.push_back(array.name);
  return names;
}

bool StoreWriter::has_state(std::string_view name) const {
  return find_state(state_->arrays, name) != nullptr;
}

Matrix<float> StoreWriter::state(std::string_view name) const {
  const StoreState* array = find_state(state_->arrays, name);
  if (array == nullptr) {
    fail(fmt::format("there is no state '{}'", name), state_->folder.string());
  }
  if (const auto put = state_->fresh.find(array->name); put != state_->fresh.end())
    return put->second.copy();
  const bool written = state_->manifest.planned || state_->options.like.empty();
  return store::read_state(written ? state_->folder : state_->options.like, *array);
}

void StoreWriter::put_state(const std::string& name, View<const float> values) {
  State& s = *state_;
  require_state_name(name);
  const std::string bytes = store::block_bytes(values, StoreType::float32);
  const StoreState array{name, values.rows, values.cols, fmt::format("{:016x}", fnv1a64(bytes))};
  const bool fixed = s.manifest.planned || !s.options.like.empty();
  const StoreState* known = find_state(s.arrays, name);
  if (fixed) {
    if (known != nullptr && known->checksum == array.checksum) return;
    fail(fmt::format("the state '{}' {}", name, known ? "differs from the stored one" : "is new"),
         (s.options.like.empty() ? s.folder : s.options.like).string(),
         s.options.like.empty() ? "a store keeps the state it began with: choose another folder"
                                : "leave out what was given, or omit `like`");
  }
  Matrix<float>& kept =
      s.fresh.insert_or_assign(name, Matrix<float>(values.rows, values.cols)).first->second;
  for (size_t i = 0; i < values.rows; ++i) std::copy_n(values.row(i), values.cols, kept.row(i));
  std::erase_if(s.arrays, [&](const StoreState& old) { return old.name == name; });
  s.arrays.push_back(array);
  std::sort(s.arrays.begin(), s.arrays.end(),
            [](const StoreState& a, const StoreState& b) { return a.name < b.name; });
}

std::vector<StoreWork> StoreWriter::plan(std::vector<StoreSample> samples,
                                         std::vector<std::string> classes) {
  return store::guarded([&] { return state_->plan(std::move(samples), std::move(classes)); });
}

std::vector<StoreFailure> StoreWriter::put(const StoreWork& work, const StoreRows& rows) {
  return store::guarded([&] { return state_->put(work, rows); });
}

MemberPlace StoreWriter::member_place() const {
  return {fs::absolute(state_->target), state_->layout.shard_size, state_->like_classes};
}

bool StoreWriter::is_whole(const StoreWork& work) const {
  const store::Layout& layout = state_->layout;
  return work.samples.size() == layout.last(work.shard) - layout.first(work.shard);
}

std::vector<StoreFailure> StoreWriter::record(const StoreWork& work,
                                              std::vector<StoreFailure> failures) {
  return store::guarded([&] { return state_->record(work, std::move(failures)); });
}

size_t StoreWriter::dropped() const { return state_->dropped; }

StoreTotals StoreWriter::finish() {
  return store::guarded([&] { return state_->finish(); });
}

}  // namespace fungi
