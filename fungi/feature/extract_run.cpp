// SPDX-License-Identifier: Apache-2.0
// A whole run: what the store still lacks is computed shard by shard and put into it.
#include <fmt/format.h>

#include "fungi/feature/extractor.h"

namespace fungi {

std::vector<StoreSample> store_samples(const Dataset& dataset) {
  std::vector<StoreSample> samples(dataset.size());
  for (size_t i = 0; i < dataset.size(); ++i) {
    samples[i] = {dataset.id(i), dataset.label(i)};
    // The size alone: a time of modification would differ between copies of the same data.
    if (const auto bytes = dataset.stored_bytes(i)) samples[i].key = std::to_string(*bytes);
  }
  return samples;
}

StoreTotals run_plan(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                     const std::vector<StoreWork>& plan, const ExtractRun& run) {
  ExtractProgress progress;
  for (const StoreWork& work : plan) progress.total += work.samples.size();
  for (const StoreWork& work : plan) {
    if (run.stop && run.stop->load()) break;
    const StoreRows rows = extractor.extract(dataset, work.samples);
    writer.put(work, rows);
    progress.done += work.samples.size();
    progress.failed += rows.failures.size();
    if (run.progress) run.progress(progress);
    if (run.strict && !rows.failures.empty()) {
      writer.finish();
      const StoreFailure& f = rows.failures.front();
      fail(f.reason, dataset.id(work.samples[f.position]),
           "without --strict it would be recorded in failed.jsonl and skipped");
    }
  }
  return writer.finish();
}

StoreTotals extract_to_store(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                             const ExtractRun& run) {
  return run_plan(extractor, dataset, writer,
                  writer.plan(store_samples(dataset), dataset.class_names()), run);
}

}  // namespace fungi
