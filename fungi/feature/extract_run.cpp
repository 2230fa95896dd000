// SPDX-License-Identifier: Apache-2.0
// A whole run: what the store still lacks is computed shard by shard and put into it.
#include "fungi/feature/extract_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace fungi {

std::vector<StoreSample> samples_without_keys(const Dataset& dataset, size_t limit) {
  std::vector<StoreSample> samples(limit ? std::min(limit, dataset.size()) : dataset.size());
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = {dataset.id(i), dataset.label(i), "", dataset.container(i)};
  return samples;
}

std::vector<StoreSample> store_samples(const Dataset& dataset, size_t limit,
                                       const std::optional<StorePart>& part, size_t shard_size) {
  std::vector<StoreSample> samples = samples_without_keys(dataset, limit);
  size_t first = 0, last = samples.size();
  if (part) std::tie(first, last) = samples_of_part(samples, shard_size, *part);
  for (size_t i = first; i < last; ++i) samples[i].key = dataset.key(i);
  return samples;
}

std::span<const StoreWork> put_known(StoreWriter& writer, std::span<const StoreWork> plan,
                                     const ExtractRun& run) {
  const auto end = std::find_if(plan.begin(), plan.end(),
                                [](const StoreWork& work) { return !work.samples.empty(); });
  const auto known = plan.first(size_t(end - plan.begin()));
  size_t done = 0, total = 0;
  for (const StoreWork& work : known) total += work.copied;
  for (const StoreWork& work : known) {
    if (run.stop && run.stop->load()) break;
    if (run.rewrite_progress && done == 0) run.rewrite_progress(0, total);
    writer.put(work, {});
    done += work.copied;
    if (run.rewrite_progress) run.rewrite_progress(done, total);
  }
  return plan.subspan(known.size());
}

Error strict_error(const StoreFailure& failure, const std::string& id) {
  return Error(failure.reason, id,
               (failure.hint.empty() ? "" : failure.hint + "; ") +
                   "without `strict` the run goes on: this file is recorded in failed.jsonl");
}

StoreTotals run_plan(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                     const std::vector<StoreWork>& plan, const ExtractRun& run) {
  const std::span<const StoreWork> todo = put_known(writer, plan, run);
  ExtractProgress progress;
  for (const StoreWork& work : todo) progress.total += work.samples.size();
  const auto tell = [&](size_t done, size_t failed) {
    if (!run.progress) return;
    run.progress({progress.saved + done, progress.total, progress.failed + failed, progress.saved});
  };
  for (const StoreWork& work : todo) {
    if (run.stop && run.stop->load()) break;
    if (progress.saved == 0) tell(0, 0);
    const StoreRows rows = extractor.extract(dataset, work.samples, tell, run.stop);
    const std::vector<StoreFailure> failures = writer.put(work, rows);
    progress.saved += work.samples.size() - rows.undone.size();
    progress.failed += failures.size();
    tell(0, 0);
    for (const StoreFailure& f : failures)
      if (run.failure) run.failure(dataset.id(work.samples[f.position]), f);
    if (run.strict && !failures.empty()) {
      writer.finish();
      const StoreFailure& f = failures.front();
      throw strict_error(f, dataset.id(work.samples[f.position]));
    }
  }
  return writer.finish();
}

StoreTotals extract_to_store(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                             const ExtractRun& run) {
  if (!extractor.settle(writer, dataset, run.support_progress, run.stop))
    return {.samples = dataset.size(), .missing = dataset.size()};
  return run_plan(extractor, dataset, writer,
                  writer.plan(store_samples(dataset), dataset.class_names()), run);
}

}  // namespace fungi
