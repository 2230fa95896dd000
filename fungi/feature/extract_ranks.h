// SPDX-License-Identifier: Apache-2.0
// One extraction by several processes (comm/comm.h). Rank 0 has the store: it settles the state,
// plans, gives out shards and writes the manifest. All ranks, rank 0 among them, compute; the
// others write their shards into the store themselves where they see its folder, or send rows.
#pragma once

#include <string>
#include <vector>

#include "fungi/comm/comm.h"
#include "fungi/feature/extractor.h"

namespace fungi {

struct RankOptions {
  bool gather = false;       // rows travel to rank 0: there is no shared file system
  bool allow_mixed = false;  // ranks may differ in their instructions
};

// What rank 0 found out that the others need before they open the model. In: rank 0's.
struct RankJob {
  StatedFacts facts;
  Precision precision = Precision::f32;
  size_t shard_size = 0;
};
RankJob share_job(const RankJob& job, Comm& comm);

// Collective. Error at rank 0, which names the rank, unless all would make the same rows of the
// same samples. At rank 0: what the other ranks run on, for StoreOptions::helpers.
std::vector<StoreOrigin> require_same_job(const StoreSpec& spec,
                                          const std::vector<StoreSample>& samples,
                                          const std::vector<std::string>& classes,
                                          size_t shard_size, const RankOptions& options,
                                          Comm& comm);

// Rank 0 tells whether there is anything to do; the others wait for that.
void begin_work(bool any, Comm& comm);
bool wait_for_work(Comm& comm);

// Collective: run_plan() of all ranks; the state is that of rank 0, whose extractor is settled.
// Only rank 0 has a writer and a plan, and gets totals; the others work until there is no more.
StoreTotals run_plan_on_ranks(Extractor& extractor, const Dataset& dataset,
                              const std::vector<StoreSample>& samples, StoreWriter& writer,
                              const std::vector<StoreWork>& plan, const ExtractRun& run,
                              const RankOptions& options, Comm& comm);
void work_for_first_rank(Extractor& extractor, const Dataset& dataset, const StoreSpec& spec,
                         std::vector<StoreSample> samples, const std::atomic<bool>* stop,
                         Comm& comm);

}  // namespace fungi
