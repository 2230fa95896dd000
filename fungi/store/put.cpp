// SPDX-License-Identifier: Apache-2.0
// StoreWriter::put: one shard from computed rows, copied rows and recorded failures. The block
// files are written first, then the failures, and the rows file last: a shard counts only when its
// rows file is there. The rows of a stopped run's last shard are parked in a folder beside it,
// where plan() finds them like those of an unfinished rewrite.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "fungi/base/error.h"
#include "fungi/store/half.h"
#include "fungi/store/session.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

// Empty when all values can be stored; else what is wrong.
std::string refusal(const StoreSpec& spec, const StoreRows& rows, size_t position) {
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    const float* values = rows.blocks[b].row(position);
    for (size_t j = 0; j < spec.blocks[b].size(); ++j) {
      if (!std::isfinite(values[j])) {
        return fmt::format("the block '{}' holds a value that is not finite", spec.blocks[b].name);
      }
      if (spec.type == StoreType::float16 && (half_from_float(values[j]) & 0x7FFFu) == 0x7C00u) {
        return fmt::format("the block '{}' holds {}, which is too large for float16",
                           spec.blocks[b].name, values[j]);
      }
    }
  }
  return "";
}

void require_shapes(const StoreSpec& spec, const StoreWork& work, const StoreRows& rows) {
  if (work.samples.empty() && rows.blocks.empty() && rows.failures.empty() && rows.undone.empty())
    return;  // a shard of known rows
  if (rows.blocks.size() != spec.blocks.size()) {
    fail(fmt::format("expected {} blocks, found {}", spec.blocks.size(), rows.blocks.size()),
         "store writer");
  }
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    const Matrix<float>& block = rows.blocks[b];
    if (block.rows() != work.samples.size() || block.cols() != spec.blocks[b].size()) {
      fail(fmt::format("expected {} x {} values, found {} x {}", work.samples.size(),
                       spec.blocks[b].size(), block.rows(), block.cols()),
           "block " + spec.blocks[b].name);
    }
  }
  for (const StoreFailure& failure : rows.failures) {
    if (failure.position >= work.samples.size()) {
      fail(fmt::format("a failure names sample {} of {}", failure.position, work.samples.size()),
           "store writer");
    }
  }
  if (!std::is_sorted(rows.undone.begin(), rows.undone.end()) ||
      (!rows.undone.empty() && rows.undone.back() >= work.samples.size())) {
    fail("expected the positions of undone samples, ascending", "store writer");
  }
}

bool is_undone(const StoreRows& rows, size_t position) {
  return std::binary_search(rows.undone.begin(), rows.undone.end(), position);
}

// One per computed sample; those that may become rows have no stage.
std::vector<FailedSample> judge(const StoreSpec& spec, const store::Layout& layout,
                                const StoreWork& work, const StoreRows& rows) {
  std::vector<FailedSample> verdicts(work.samples.size());
  for (const StoreFailure& failure : rows.failures) {
    verdicts[failure.position].stage = failure.stage.empty() ? "extract" : failure.stage;
    verdicts[failure.position].reason = failure.reason;
    verdicts[failure.position].hint = failure.hint;
  }
  for (size_t p = 0; p < verdicts.size(); ++p) {
    const StoreSample& sample = layout.samples[work.samples[p]];
    verdicts[p].id = sample.id;
    verdicts[p].key = sample.key;
    if (!verdicts[p].stage.empty() || is_undone(rows, p)) continue;
    verdicts[p].reason = refusal(spec, rows, p);
    if (!verdicts[p].reason.empty()) verdicts[p].stage = "store";
  }
  return verdicts;
}

// Where a row comes from: a file, or the computed rows.
struct Piece {
  const store::Sources::Location* stored = nullptr;
  size_t position = 0;
};

}  // namespace

std::vector<StoreFailure> StoreWriter::State::write_shard(size_t shard, const StoreWork& work,
                                                          const StoreRows& rows) {
  const bool part = !rows.undone.empty();
  const store::Path into = part ? store::next_update(folder) : target;
  if (part) files.make_folder(into);
  std::vector<FailedSample> verdicts = judge(spec, layout, work, rows);
  std::vector<Piece> pieces;
  std::vector<size_t> failed_now;
  std::string rows_text, failed_text;
  size_t next = 0;
  for (size_t i = layout.first(shard); i < layout.last(shard); ++i) {
    Piece piece;
    if (next < work.samples.size() && work.samples[next] == i) {
      piece.position = next++;
      if (is_undone(rows, piece.position)) continue;
      const FailedSample& verdict = verdicts[piece.position];
      if (!verdict.stage.empty()) {
        failed_text += store::failed_line(verdict);
        failed_now.push_back(i);
        continue;
      }
    } else if (part) {
      continue;  // it is somewhere already, and stays there
    } else if (piece.stored = sources.find(layout.samples[i]); piece.stored == nullptr) {
      FUNGI_ASSERT(failures.find(layout.samples[i]) != nullptr);
      failed_now.push_back(i);
      continue;
    }
    pieces.push_back(piece);
    rows_text += store::row_line(layout.row(i, piece.stored ? piece.stored->key : ""));
  }
  FUNGI_ASSERT(next == work.samples.size());

  // Most shards are written as they were computed, without a copy.
  const bool as_computed =
      !part && failed_now.empty() && next == layout.last(shard) - layout.first(shard);
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    Matrix<float> block(as_computed ? 0 : pieces.size(), spec.blocks[b].size());
    for (size_t r = 0; r < block.rows(); ++r) {
      if (pieces[r].stored != nullptr) {
        sources.read(*pieces[r].stored, spec.blocks[b], block.row(r));
      } else {
        std::copy_n(rows.blocks[b].row(pieces[r].position), block.cols(), block.row(r));
      }
    }
    files.write(into / store::block_file(spec.blocks[b].name, shard),
                store::block_bytes(as_computed ? rows.blocks[b] : block, spec.type));
  }
  if (!failed_text.empty() && member)
    files.write(target / store::failed_file(shard), failed_text);
  else if (!failed_text.empty())
    files.append(target / store::kFailed, failed_text);
  files.write(into / store::rows_file(shard), rows_text);

  std::vector<StoreFailure> recorded;
  for (size_t p = 0; p < verdicts.size(); ++p) {
    if (verdicts[p].stage.empty()) continue;
    recorded.push_back({p, verdicts[p].stage, verdicts[p].reason, verdicts[p].hint});
    failures.add(std::move(verdicts[p]));
  }
  to_compute[shard] = rows.undone.size();
  if (part) return recorded;
  for (size_t i : failed_now) failed[i] = true;
  shard_rows[shard] = pieces.size();
  return recorded;
}

std::vector<StoreFailure> StoreWriter::State::record(const StoreWork& work,
                                                     std::vector<StoreFailure> failures_now) {
  const size_t shard = work.shard, rows = work.samples.size() - failures_now.size();
  FUNGI_ASSERT(!shard_rows[shard] && work.samples.size() == to_compute[shard]);
  const store::Path file = target / store::rows_file(shard);
  const auto seen = [&] {
    return std::filesystem::exists(file) && store::read_rows(file).size() == rows &&
           store::shard_is_whole(target, spec, shard, rows);
  };
  constexpr int kLooks = 20;  // a file system on the network may need a moment
  for (int look = 1; !seen(); ++look) {
    if (look == kLooks)
      fail(fmt::format("another rank wrote shard {}, which is not there", shard), target.string(),
           "all ranks need one folder on a shared file system; or pass `gather`");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const StoreFailure& f : failures_now) {
    const size_t i = work.samples[f.position];
    failures.add({layout.samples[i].id, f.stage, f.reason, f.hint, layout.samples[i].key});
    failed[i] = true;
  }
  to_compute[shard] = 0;
  shard_rows[shard] = rows;
  return failures_now;
}

std::vector<StoreFailure> StoreWriter::State::put(const StoreWork& work, const StoreRows& rows) {
  if (work.shard >= shard_rows.size() || shard_rows[work.shard] ||
      work.samples.size() != to_compute[work.shard]) {
    fail(fmt::format("shard {} is not among those that plan() asked for, or was put already",
                     work.shard),
         "store writer");
  }
  if (options.dry_run) fail("nothing can be put in a dry run", "store writer");
  if (work.samples != missing(work.shard)) {
    fail(fmt::format("the samples of shard {} are not those that plan() asked for", work.shard),
         "store writer", "put each StoreWork as it came");
  }
  require_shapes(spec, work, rows);
  if (!work.samples.empty() && rows.undone.size() == work.samples.size()) return {};
  return write_shard(work.shard, work, rows);
}

}  // namespace fungi
