// SPDX-License-Identifier: Apache-2.0
// Which views of a sample are run through the backbone: the requests of all objectives with equal
// ones merged, so that the embedding and KL share one forward. Row order within a chunk of n
// samples: request, sample, view.
#pragma once

#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/input/preprocess.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/presets.h"
#include "fungi/view/view.h"

namespace fungi {

struct ScheduledRequest {
  ViewRequest request;
  Preprocess preprocess;  // with the statistics the request wants
  size_t views = 0;       // per sample
};

class ViewSchedule {
 public:
  ViewSchedule(const Architecture& architecture, Preset preset);

  // The place of a request; added when no equal one is there. The first is the embedding's own
  // view.
  size_t add(const ViewRequest& request);

  const std::vector<ScheduledRequest>& requests() const { return requests_; }
  const ScheduledRequest& operator[](size_t i) const { return requests_[i]; }
  size_t views_per_sample() const;
  size_t first_row(size_t request, size_t samples) const;  // in a chunk of that many samples

 private:
  Preprocess preprocess_for(const ViewRequest& request) const;
  Preprocess evaluation_;
  std::vector<ScheduledRequest> requests_;
};

// The backbone's evaluation transform under a preset (SPEC 3.4).
Preprocess evaluation_transform(const Architecture& architecture, Preset preset);

}  // namespace fungi
