// SPDX-License-Identifier: Apache-2.0
// A store projected anew from its kept factors: another kind, width or seed of projection for the
// cost of the projection alone. The new store holds the bytes that an extraction with that
// projection would have written; in its manifest `notes` says where it comes
// from, and `followed_classes` is not carried over.
#pragma once

#include <filesystem>
#include <optional>

#include "fungi/feature/extractor.h"
#include "fungi/store/store.h"

namespace fungi {

struct ReprojectOptions {
  ProjectionKind kind = ProjectionKind::sign;
  size_t rows = 0;               // 0: the embedding's width
  std::optional<uint64_t> seed;  // default: that of the extraction
  Matrix<float> matrix;          // for ProjectionKind::matrix; with another kind an Error
  bool keep_factors = false;     // the new store holds them, too
  bool overwrite = false;        // throw away what the folder holds
  bool prune = false;            // drop its rows of samples that `from` does not hold
};

// Ids, labels, failures, state and embedding are taken over, every gradient block is projected.
// Repeating an interrupted call goes on with it; repeated after a change of `from`, it follows:
// samples that are new or differ there are projected. Errors: no factors, a damaged file of `from`,
// another store at `folder`, rows at `folder` that would be lost without `prune`. Of `run` only
// `stop`, `rewrite_progress` and `progress` are looked at.
StoreTotals project_store(const Store& from, const std::filesystem::path& folder,
                          ReprojectOptions options, Pool& pool, const ExtractRun& run = {});

}  // namespace fungi
