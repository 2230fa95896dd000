// SPDX-License-Identifier: Apache-2.0
// What every run on a plan begins with. Internal to this room.
#pragma once

#include <span>

#include "fungi/feature/extractor.h"

namespace fungi {

// Writes the shards in which nothing has to be computed, until run.stop is set, and returns the
// others.
std::span<const StoreWork> put_known(StoreWriter& writer, std::span<const StoreWork> plan,
                                     const ExtractRun& run);

// What ends a strict run.
Error strict_error(const StoreFailure& failure, const std::string& id);

}  // namespace fungi
