// SPDX-License-Identifier: Apache-2.0
// Which views of a sample are run through the backbone: the requests of all objectives with equal
// ones merged, so that the embedding and KL share one forward. Row order within a chunk of n
// samples: request, sample, view.
// Internal to this room.
#pragma once

#include <memory>
#include <vector>

#include "fungi/feature/modality.h"
#include "fungi/objective/objective.h"

namespace fungi {

struct ScheduledRequest {
  ViewRequest request;
  size_t views = 0;  // per sample
};

class ViewSchedule {
 public:
  explicit ViewSchedule(std::shared_ptr<const Modality> modality);

  // The place of a request; added when no equal one is there. The first is the embedding's own
  // view.
  size_t add(const ViewRequest& request);

  const Modality& modality() const { return *modality_; }
  const std::vector<ScheduledRequest>& requests() const { return requests_; }
  const ScheduledRequest& operator[](size_t i) const { return requests_[i]; }
  size_t views_per_sample() const;
  // Of the forward passes of a sample, multiply and add counted as two.
  double forward_flops(const Architecture& model) const;
  size_t first_row(size_t request, size_t samples) const;  // in a chunk of that many samples

 private:
  std::shared_ptr<const Modality> modality_;
  std::vector<ScheduledRequest> requests_;
};

}  // namespace fungi
