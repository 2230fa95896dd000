// SPDX-License-Identifier: Apache-2.0
// The makers behind Projection::make(), one per way of computing. Options were checked.
// Internal to this room.
#pragma once

#include <memory>

#include "fungi/projection/projection.h"

namespace fungi {

std::unique_ptr<Projection> make_dense_projection(ProjectionOptions options,
                                                  const LayerShape& layer);
std::unique_ptr<Projection> make_factored_projection(const ProjectionOptions& options,
                                                     const LayerShape& layer);
std::unique_ptr<Projection> make_unprojected(const ProjectionOptions& options,
                                             const LayerShape& layer);

}  // namespace fungi
