// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/project_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fungi/feature/comparable.h"
#include "fungi/feature/extract_run.h"
#include "fungi/feature/kept_factors.h"
#include "fungi/feature/settings.h"
#include "fungi/kernel/kernel.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

using store::Json;

// The data set as the store knows it: which of its samples failed, but not where in their shard.
// They stand at its end, which changes no byte of a store.
struct Samples {
  std::vector<StoreSample> list;
  std::vector<size_t> row;                  // by sample; that of a failure is not used
  std::vector<const FailedSample*> failed;  // by sample; null for rows
};

Samples samples_of(const Store& from, const std::vector<FailedSample>& failed) {
  const StoreManifest& m = from.manifest();
  if (failed.size() != m.failed || m.rows() + m.failed != m.samples)
    fail(fmt::format(
             "expected {} failures of {} samples, found {} lines in failed.jsonl and {} rows",
             m.failed, m.samples, failed.size(), m.rows()),
         from.folder().string(), "repeat the extraction: it puts the store in order");
  Samples samples;
  size_t next_failed = 0;
  for (size_t shard = 0; shard < from.shards(); ++shard) {
    for (size_t row = from.first_row(shard); row < from.first_row(shard + 1); ++row) {
      samples.list.push_back({from.ids()[row], from.labels()[row], from.keys()[row]});
      samples.row.push_back(row);
      samples.failed.push_back(nullptr);
    }
    const size_t end = std::min(m.samples, (m.shards[shard].index + 1) * m.shard_size);
    for (; samples.list.size() < end; ++next_failed) {
      const FailedSample& f = failed.at(next_failed);
      samples.list.push_back({f.id, -1, f.key});
      samples.row.push_back(0);
      samples.failed.push_back(&f);
    }
  }
  return samples;
}

// What the source says about an id now. A projected store follows it: rows whose embedding differs
// there, and failures that are none there any more, are made again. The embedding stands for the
// picture: keys need not tell that it changed, and the data sets of CIFAR and MNIST have none.
class Source {
 public:
  Source(const Store& from, const std::vector<FailedSample>& failed) : from_(from) {
    for (size_t row = 0; row < from.rows(); ++row) rows_.emplace(from.ids()[row], row);
    for (const FailedSample& f : failed) reasons_.emplace(f.id, f.reason);
  }

  bool has_row(const std::string& id, std::span<const float> embedding) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return false;
    const size_t row = found->second;
    if (row < mapped_.first_row || row - mapped_.first_row >= mapped_.rows.rows) {
      if (row < from_.first_row(shard_)) shard_ = 0;  // rows mostly come in order
      while (from_.first_row(shard_ + 1) <= row) ++shard_;
      mapped_ = from_.map("embedding", shard_);
    }
    return embedding.size() == mapped_.rows.cols &&
           std::equal(embedding.begin(), embedding.end(),
                      mapped_.rows.row(row - mapped_.first_row));
  }

  bool has_failure(const std::string& id, const std::string& reason) const {
    const auto found = reasons_.find(id);
    return found != reasons_.end() && found->second == reason;
  }

 private:
  const Store& from_;
  std::unordered_map<std::string_view, size_t> rows_;
  std::unordered_map<std::string_view, std::string_view> reasons_;
  size_t shard_ = 0;
  Store::Mapped mapped_;  // of that shard
};

constexpr size_t kGroupBytes = size_t{256} << 20;  // of factors in memory at a time

// Computes the rows of one shard after another.
class Reprojection {
 public:
  Reprojection(const Store& from, ReprojectOptions options) : from_(from) {
    const StoreSpec& old = from.manifest().spec;
    for (const std::string& name : gradient_blocks(old)) factors_.emplace_back(from, name);
    if (factors_.empty())
      fail("the store holds the embedding alone: there is no gradient to project",
           from.folder().string(), "extract again with `objectives` and `keep_factors`");
    for (const StoreBlock& block : old.blocks)
      if (block.name == "embedding" || (options.keep_factors && !factors_of(block.name).empty()))
        copied_.push_back(block);
    FUNGI_ASSERT(!copied_.empty() && copied_.front().name == "embedding");
    Settings settings = read_settings(old, from.folder().string());
    projection_ = Projection::make({.kind = options.kind,
                                    .rows = options.rows ? options.rows : copied_.front().width,
                                    .seed = options.seed.value_or(settings.seed),
                                    .matrix = std::move(options.matrix),
                                    .precision = projection_precision(settings.precision)},
                                   factors_.front().layer());
    settings.gradient->projection = settings_of(*projection_);
    Json origins = Json::array();
    for (const StoreOrigin& o : from.manifest().origins)
      origins.push_back({{"version", o.version}, {"isa", o.isa}});
    spec_ = old;
    write_settings(settings, spec_);
    spec_.require_same = require_same_features;
    Json notes = store::parse_object(old.notes, "notes");
    notes["projected_from"] = {{"produced_by", origins}};
    spec_.notes = store::dump(notes);
    spec_.isa = kernel::kernel_for(best_isa(), settings.precision).name;
    spec_.blocks = {copied_.front()};
    for (const std::string& name : gradient_blocks(old))
      spec_.blocks.push_back({name, projection_->rows(), 1, find_block(old.blocks, name)->weight});
    spec_.blocks.insert(spec_.blocks.end(), copied_.begin() + 1, copied_.end());
  }

  const StoreSpec& spec() const { return spec_; }

  // Everything that rows() will read is there and whole; looked at before an older store goes.
  void require_whole() const {
    std::vector<std::string> names{"embedding"};
    for (const std::string& name : gradient_blocks(from_.manifest().spec))
      for (const char which : {'a', 'b'}) names.push_back(factor_block(name, which));
    for (const std::string& name : names)
      for (size_t shard = 0; shard < from_.shards(); ++shard) from_.map(name, shard);
  }

  StoreRows rows(const Samples& samples, const StoreWork& work, Pool& pool) const {
    StoreRows out;
    for (const StoreBlock& block : spec_.blocks)
      out.blocks.emplace_back(work.samples.size(), block.size());
    std::vector<size_t> positions, wanted;  // in the work, in the store
    for (size_t p = 0; p < work.samples.size(); ++p) {
      if (const FailedSample* f = samples.failed[work.samples[p]]) {
        out.failures.push_back({p, f->stage, f->reason, f->hint});
      } else {
        positions.push_back(p);
        wanted.push_back(samples.row[work.samples[p]]);
      }
    }
    for (size_t c = 0; c < copied_.size(); ++c)
      scatter(from_.gather(copied_[c].name, wanted), positions,
              out.blocks[c == 0 ? 0 : factors_.size() + c]);
    size_t bytes = 0;
    for (const KeptFactors& f : factors_) bytes += f.bytes_per_row();
    const size_t group = std::clamp<size_t>(kGroupBytes / bytes, 1, 512);
    for (size_t first = 0; first < wanted.size(); first += group) {
      const size_t count = std::min(group, wanted.size() - first);
      project_group({wanted.data() + first, count}, {positions.data() + first, count}, out, pool);
    }
    return out;
  }

 private:
  static void scatter(View<const float> rows, std::span<const size_t> positions, View<float> to) {
    for (size_t i = 0; i < positions.size(); ++i)
      std::copy_n(rows.row(i), rows.cols, to.row(positions[i]));
  }

  // All gradients of some rows in one call: they share the passes over the projection's matrix.
  void project_group(std::span<const size_t> wanted, std::span<const size_t> positions,
                     StoreRows& out, Pool& pool) const {
    std::vector<FactorRows> kept;
    std::vector<GradientFactors> gradients;
    for (const KeptFactors& f : factors_) {
      kept.push_back(f.read(wanted));
      gradients.insert(gradients.end(), kept.back().samples.begin(), kept.back().samples.end());
    }
    Matrix<float> y(gradients.size(), projection_->rows());
    projection_->project(gradients, y, pool);
    for (size_t i = 0; i < y.rows(); ++i) normalise({y.row(i), y.cols()});
    for (size_t o = 0; o < factors_.size(); ++o)
      scatter(y.view().slice(o * wanted.size(), wanted.size()), positions, out.blocks[1 + o]);
  }

  const Store& from_;
  std::vector<KeptFactors> factors_;  // one per gradient
  std::vector<StoreBlock> copied_;    // the embedding, then factors that stay
  std::unique_ptr<Projection> projection_;
  StoreSpec spec_;
};

}  // namespace

StoreTotals project_store(const Store& from, const std::filesystem::path& folder,
                          ReprojectOptions options, Pool& pool, const ExtractRun& run) {
  const bool overwrite = options.overwrite, prune = options.prune;
  if (std::filesystem::exists(folder) && std::filesystem::equivalent(folder, from.folder()))
    fail("the new store would overwrite the one it is made of", folder.string(),
         "choose another folder");
  const Reprojection reprojection(from, std::move(options));
  const std::vector<FailedSample> failed = from.failed();
  const Samples samples = samples_of(from, failed);
  reprojection.require_whole();
  Source source(from, failed);
  StoreOptions store_options{
      .shard_size = from.manifest().shard_size, .overwrite = overwrite, .prune = prune};
  store_options.row_holds = [&](const std::string& id, std::span<const float> embedding) {
    return source.has_row(id, embedding);
  };
  store_options.failure_holds = [&](const std::string& id, const std::string& reason) {
    return source.has_failure(id, reason);
  };
  StoreWriter writer(folder, reprojection.spec(), std::move(store_options));
  for (const StoreState& state : from.manifest().state)
    writer.put_state(state.name, from.state(state.name));
  const std::vector<StoreWork> plan = writer.plan(samples.list, from.classes());
  const std::span<const StoreWork> todo = put_known(writer, plan, run);
  ExtractProgress progress;
  for (const StoreWork& work : todo) progress.total += work.samples.size();
  for (const StoreWork& work : todo) {
    if (run.stop && run.stop->load()) break;
    if (run.progress && progress.done == 0) run.progress(progress);
    const StoreRows rows = reprojection.rows(samples, work, pool);
    progress.failed += writer.put(work, rows).size();
    progress.saved = progress.done += work.samples.size();
    if (run.progress) run.progress(progress);
  }
  return writer.finish();
}

}  // namespace fungi
