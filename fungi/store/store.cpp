// SPDX-License-Identifier: Apache-2.0
// Store: opening and reading. Files are mapped for the length of a call, so that stores of any size
// and any number of shards can be read.
#include "fungi/store/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>

#include "fungi/base/error.h"
#include "fungi/store/shards.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// Which file this is, and that nobody wrote to it: the same after a move.
struct FileMark {
  int64_t number = 0, size = -1, seconds = 0, nanoseconds = 0;  // size -1: there is none
  bool operator==(const FileMark&) const = default;
  bool same_but_number(FileMark other) const { return other.number = number, other == *this; }
};
FileMark mark_of(const fs::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return {};
  return {int64_t(s.st_ino), s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
}

// A file that can be opened and yet is no whole array was cut or changed.
store::BlockFile open_whole(const fs::path& path) {
  try {
    return store::open_block(path);
  } catch (const Error& e) {
    if (store::cannot_be_opened(e)) throw;
    fail(e.message(), path.string(), store::kRepeat);
  }
}

}  // namespace

struct Store::State {
  fs::path folder;
  // A rewrite that waits to be moved in place: its files count first.
  std::optional<fs::path> update;
  StoreManifest manifest;
  std::vector<size_t> first_row;  // of each shard, and the number of all rows at the end
  std::vector<FileMark> marks;    // of each shard's rows file, as it was read
  std::vector<std::string> ids, keys;
  std::vector<int64_t> labels;

  fs::path file(const std::string& name) const {
    return update && fs::exists(*update / name) ? *update / name : folder / name;
  }

  void open(const fs::path& path, bool allow_partial);

  // The manifest of an extraction that was killed does not know the shards it left.
  void find_shards() {
    manifest.shards.clear();
    for (const size_t shard : store::list_shards(folder)) {
      const size_t rows = store::read_rows(folder / store::rows_file(shard), /*torn=*/true).size();
      if (store::shard_is_whole(folder, manifest.spec, shard, rows))
        manifest.shards.push_back({shard, rows});
    }
    manifest.failed = store::read_failed(folder / store::kFailed).size();
  }

  // Ids belong to the rows files that were read at opening. Whoever replaces a shard takes its rows
  // file away before any of its blocks (update.h): where it still is the same one, a block
  // that was opened before is that of these ids. One look for each block, not one for each file.
  void require_same_rows(size_t position) const {
    const std::string name = store::rows_file(manifest.shards[position].index);
    if (update && mark_of(*update / name) == marks[position]) return;  // not moved in place yet
    const FileMark now = mark_of(folder / name), &then = marks[position];
    if (now == then || (now.same_but_number(then) && holds_same_rows(position))) return;
    fail("the store was rewritten since it was opened", folder.string(),
         "open it again, or repeat the command");
  }

  // Where the file system is a program or on another machine, a file's number may change by itself.
  bool holds_same_rows(size_t position) const {
    const auto rows = store::read_rows(folder / store::rows_file(manifest.shards[position].index));
    const size_t first = first_row[position];
    return rows.size() == first_row[position + 1] - first &&
           std::equal(rows.begin(), rows.end(), ids.begin() + ptrdiff_t(first),
                      [](const store::Row& row, const std::string& id) { return row.id == id; });
  }

  store::BlockFile open_block(const StoreBlock& block, size_t position) const {
    std::optional<store::BlockFile> opened;
    try {
      opened = open_found(block, position);
    } catch (const Error&) {
      require_same_rows(position);  // or that is the reason
      throw;
    }
    require_same_rows(position);
    return std::move(*opened);
  }

  store::BlockFile open_found(const StoreBlock& block, size_t position) const {
    const StoreShard& shard = manifest.shards[position];
    const fs::path path = file(store::block_file(block.name, shard.index));
    std::error_code unknown;  // then it cannot be opened, which says why
    if (!fs::exists(path, unknown) && !unknown)
      fail("the file is missing", path.string(), store::kRepeat);
    store::BlockFile opened = open_whole(path);
    const View<const float>& values = opened.values;
    if (values.rows != shard.rows || values.cols != block.size() ||
        opened.type != manifest.spec.type) {
      fail(fmt::format("expected {} x {} {}, found {} x {} {}", shard.rows, block.size(),
                       to_string(manifest.spec.type), values.rows, values.cols,
                       to_string(opened.type)),
           path.string(), store::kRepeat);
    }
    return opened;
  }

  const StoreBlock& one_block(std::string_view name) const {
    const StoreBlock* found = find_block(manifest.spec.blocks, name);
    if (found == nullptr)
      fail(fmt::format("there is no block '{}'; the store holds {}", name,
                       fmt::join(names_of(manifest.spec.blocks), ", ")),
           folder.string(), "name one of them");
    return *found;
  }

  // A store is never written with such a value: the file was damaged.
  [[noreturn]] void fail_not_finite(const StoreBlock& block, size_t row) const {
    const auto next = std::upper_bound(first_row.begin(), first_row.end(), row);
    const size_t index = manifest.shards[size_t(next - first_row.begin()) - 1].index;
    fail(fmt::format("the row of '{}' holds a value that is not finite", ids[row]),
         file(store::block_file(block.name, index)).string(),
         "restore this file, or delete it and repeat the command that wrote the store");
  }
};

bool is_store(const fs::path& folder) {
  std::error_code ignored;  // what cannot be looked at is no store
  if (!fs::is_regular_file(folder / store::kManifest, ignored)) return false;
  try {
    parse_manifest(store::read_text(folder / store::kManifest), folder.string());
    return true;
  } catch (const Error&) {
    return false;
  }
}

Store::Store() : state_(std::make_unique<State>()) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const fs::path& folder, bool allow_partial) {
  Store opened;
  store::guarded([&] { opened.state_->open(folder, allow_partial); });
  return opened;
}

void Store::State::open(const fs::path& path, bool allow_partial) {
  folder = path;
  if (!fs::exists(folder / store::kManifest)) {
    fail("no manifest.json: this is not a feature store", folder.string(),
         "give a folder that `extract` or `project` wrote");
  }
  update = store::pending_commit(folder);
  const fs::path file_name = file(store::kManifest);
  manifest = parse_manifest(store::read_text(file_name), file_name.string());
  if (manifest.part && !allow_partial)
    fail(fmt::format("this is part {} of a data set", to_string(manifest.part->part)),
         folder.string(), "join all parts with `merge`, and use what comes of it");
  if (!manifest.complete && !allow_partial) {
    fail("the extraction was not finished", folder.string(),
         "repeat `extract`: it goes on where it stopped");
  }
  if (!manifest.complete) find_shards();
  first_row.push_back(0);
  for (const StoreShard& shard : manifest.shards) {
    const fs::path rows_path = file(store::rows_file(shard.index));
    marks.push_back(mark_of(rows_path));
    std::vector<store::Row> rows = store::read_rows(rows_path);
    if (rows.size() != shard.rows) {
      fail(fmt::format("expected {} rows, found {}", shard.rows, rows.size()), rows_path.string(),
           store::kRepeat);
    }
    for (store::Row& row : rows) {
      const auto classes = static_cast<int64_t>(manifest.classes.size());
      if (row.label < -1 || (classes > 0 && row.label >= classes)) {
        fail(fmt::format("the label {} of '{}' has no class", row.label, row.id),
             rows_path.string());
      }
      ids.push_back(std::move(row.id));
      labels.push_back(row.label);
      keys.push_back(std::move(row.key));
    }
    first_row.push_back(ids.size());
  }
}

const fs::path& Store::folder() const& { return state_->folder; }
const StoreManifest& Store::manifest() const& { return state_->manifest; }
size_t Store::rows() const { return state_->ids.size(); }
const std::vector<std::string>& Store::ids() const& { return state_->ids; }
const std::vector<int64_t>& Store::labels() const& { return state_->labels; }
const std::vector<std::string>& Store::keys() const& { return state_->keys; }
const std::vector<std::string>& Store::classes() const& { return state_->manifest.classes; }
size_t Store::shards() const { return state_->manifest.shards.size(); }

size_t Store::first_row(size_t shard) const {
  if (shard > shards())
    fail(fmt::format("asked for shard {} of {}", shard, shards()), folder().string());
  return state_->first_row[shard];
}

std::string Store::class_name(size_t row) const {
  if (row >= rows()) fail(fmt::format("asked for row {} of {}", row, rows()), folder().string());
  const int64_t label = labels()[row];
  if (label < 0) return "";
  return classes().empty() ? std::to_string(label) : classes()[static_cast<size_t>(label)];
}

std::vector<StoreBlock> Store::select(std::string_view features) const {
  const std::vector<StoreBlock>& all = manifest().spec.blocks;
  std::vector<StoreBlock> chosen;
  if (features.empty() || features == "all") {
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), is_feature);
    return chosen;
  }
  for (const std::string& part : split_features(features)) {
    const auto [weight, name] = split_weight(part, "`features`");
    const StoreBlock* found = find_block(all, name);
    if (found == nullptr) {
      fail(fmt::format("there is no block '{}'; the store holds {}", name,
                       fmt::join(names_of(all), ", ")),
           folder().string(), "write block names with '+' between them");
    }
    if (find_block(chosen, name) != nullptr) {
      fail(fmt::format("the block '{}' is named twice", name), folder().string(),
           "name every block once");
    }
    chosen.push_back(*found);
    chosen.back().weight = weight.value_or(found->weight);
  }
  return chosen;
}

void Store::read(const std::vector<StoreBlock>& blocks, bool normalise, size_t first,
                 View<float> out) const {
  require_side_by_side(blocks, folder().string());
  const size_t width = total_width(blocks);
  if (out.cols != width || first > rows() || out.rows > rows() - first) {
    fail(fmt::format("asked for rows {} to {} and {} columns; there are {} rows and {} columns",
                     first, first + out.rows, out.cols, rows(), width),
         folder().string());
  }
  const std::vector<size_t>& starts = state_->first_row;
  for (size_t shard = 0; shard + 1 < starts.size(); ++shard) {
    const size_t begin = std::max(first, starts[shard]);
    const size_t end = std::min(first + out.rows, starts[shard + 1]);
    if (begin >= end) continue;
    size_t column = 0;
    for (const StoreBlock& block : blocks) {
      View<float> part(out.row(begin - first) + column, end - begin, block.width, out.stride);
      const store::BlockFile file = state_->open_block(block, shard);
      for (size_t i = begin; i < end; ++i) {
        std::copy_n(file.values.row(i - starts[shard]), block.width, part.row(i - begin));
      }
      const size_t bad = normalise ? store::unit_rows(part, float(block.weight)) : part.rows;
      if (bad < part.rows) state_->fail_not_finite(block, begin + bad);
      column += block.width;
    }
  }
}

void Store::read(const std::vector<StoreBlock>& blocks, bool normalise,
                 std::span<const size_t> wanted, View<float> out) const {
  require_side_by_side(blocks, folder().string());
  for (const StoreBlock& block : blocks)
    if (const StoreBlock& stored = state_->one_block(block.name); !stored.same_floats(block))
      fail(fmt::format("asked for {} columns of '{}', which has {}", block.size(), block.name,
                       stored.size()),
           folder().string(), "take the blocks that select() gives");
  if (out.rows != wanted.size() || out.cols != total_width(blocks))
    fail(fmt::format("asked for {} rows and {} columns; there is room for {} rows and {} columns",
                     wanted.size(), total_width(blocks), out.rows, out.cols),
         folder().string());
  size_t column = 0;
  for (const StoreBlock& block : blocks) {
    Matrix<float> part = gather(block.name, wanted);
    const size_t bad = normalise ? store::unit_rows(part, float(block.weight)) : part.rows();
    if (bad < part.rows()) state_->fail_not_finite(block, wanted[bad]);
    for (size_t i = 0; i < part.rows(); ++i)
      std::copy_n(part.row(i), block.width, out.row(i) + column);
    column += block.width;
  }
}

FeatureSet Store::load(std::string_view features, bool normalise) const {
  FeatureSet set{ids(), labels(), classes(), select(features), {}};
  set.features = Matrix<float>(rows(), total_width(set.blocks));
  read(set.blocks, normalise, 0, set.features);
  return set;
}

Store::Mapped Store::map(std::string_view block, size_t shard) const {
  const StoreBlock& chosen = state_->one_block(block);
  if (shard >= shards()) {
    fail(fmt::format("asked for shard {} of {}", shard, shards()), folder().string());
  }
  store::BlockFile file = state_->open_block(chosen, shard);
  return {file.values, state_->first_row[shard], std::move(file.owner)};
}

Matrix<float> Store::gather(std::string_view block, std::span<const size_t> wanted) const {
  const std::vector<size_t>& starts = state_->first_row;
  Matrix<float> out(wanted.size(), state_->one_block(block).size());
  Mapped mapped;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t row = wanted[i];
    if (row >= rows()) fail(fmt::format("asked for row {} of {}", row, rows()), folder().string());
    if (row < mapped.first_row || row - mapped.first_row >= mapped.rows.rows) {
      const auto next = std::upper_bound(starts.begin(), starts.end(), row);
      mapped = map(block, static_cast<size_t>(next - starts.begin()) - 1);
    }
    std::copy_n(mapped.rows.row(row - mapped.first_row), out.cols(), out.row(i));
  }
  return out;
}

Matrix<float> Store::state(std::string_view name) const {
  for (const StoreState& array : manifest().state) {
    if (array.name == name) return store::read_state(folder(), array);
  }
  fail(fmt::format("there is no state '{}'", name), folder().string());
}

std::vector<FailedSample> Store::failed() const {
  return store::read_failed(state_->file(store::kFailed));
}

}  // namespace fungi
