// SPDX-License-Identifier: Apache-2.0
// With which mean and deviation the filter banks of a model like AST are normalised: those of the
// paper's two data sets, or of the data at hand. They are stated to the backbone, like any fact
// that a user knows better (StatedFacts).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/backbone/architecture.h"
#include "fungi/feature/modality.h"
#include "fungi/input/dataset.h"
#include "fungi/store/manifest.h"

namespace fungi {

// frames, mean and std of "esc50" or "speechcommands" (SPEC 4.3). Error for another name.
StatedFacts sound_statistics(const std::string& name);
std::vector<std::string> sound_statistics_names();

// How to open a data set that shall be measured.
DatasetOptions sound_data(const Architecture& architecture, const SoundOptions& options);

struct MeasuredSounds {
  double mean = 0, std = 0;
  size_t sounds = 0, failed = 0;  // those that cannot be used decide about nothing
  StatedFacts facts() const;      // mean and std
};

// Over all numbers of all rows that hold sound, as the model looks at them; the same on any number
// of threads. Errors: a model without such statistics, no sound that can be used, sounds that are
// all alike.
MeasuredSounds measure_sounds(const Dataset& data, const Architecture& architecture,
                              const SoundOptions& options, Pool& pool,
                              const std::function<void(size_t, size_t)>& progress = {});

// All facts to be stated for what `statistics` says beside those that were `stated`: "model" says
// nothing, the name of a paper's data set stands above them; "measure", which calls `measure` unless
// the store that is continued has its own, below.
StatedFacts chosen_statistics(const std::string& choice, StatedFacts stated,
                              const StoreManifest* continued,
                              const std::function<MeasuredSounds()>& measure);
// A note of what was measured.
std::string describe(const MeasuredSounds& measured);

}  // namespace fungi
