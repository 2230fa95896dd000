// SPDX-License-Identifier: Apache-2.0
// What decides about features, as Python states it; what is left out has the library's defaults or
// those of the store that is followed.
#pragma once

#include "fungi/feature/follow.h"
#include "python/models.h"

namespace fungi::python {

// Arguments that are not None, by the names of fungi.extract(); `given` holds arrays by name.
// Conflicts are exceptions that name the argument.
void apply(const nb::dict& stated, ExtractionSettings& settings);

// How to open a data set: kind, samples, split, text_column, label_column, id_column, fold, window
// and hop, those of them that are stated.
DatasetOptions dataset_options(const nb::dict& stated);
SampleKind parse_samples(const std::string& name);  // "image", "text" or "sound"

// A copy for another extractor: matrices and all.
ExtractorOptions copy_of(const ExtractorOptions& options);

}  // namespace fungi::python
