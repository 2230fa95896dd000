// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/view_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/sides.h"
#include "fungi/base/error.h"

namespace fungi {
namespace {

bool same_request(const ViewRequest& x, const ViewRequest& y) {
  const bool random = is_random(x.plan) || x.masked_views;
  return x.plan == y.plan && (!random || x.draw == y.draw) && x.masked_views == y.masked_views &&
         x.mask_ratio == y.mask_ratio;
}

}  // namespace

ViewSchedule::ViewSchedule(std::shared_ptr<const Modality> modality)
    : modality_(std::move(modality)) {
  add({});
}

size_t ViewSchedule::add(const ViewRequest& request) {
  if (!(request.mask_ratio >= 0 && request.mask_ratio <= 1))
    fail(fmt::format("expected a share of hidden tokens from 0 to 1, found {}", request.mask_ratio),
         "ViewRequest::mask_ratio");
  ScheduledRequest wanted{request};
  wanted.request.plan = simplest(request.plan);
  for (size_t i = 0; i < requests_.size(); ++i)
    if (same_request(requests_[i].request, wanted.request)) return i;
  wanted.views = modality_->views(wanted.request.plan);
  requests_.push_back(std::move(wanted));
  return requests_.size() - 1;
}

size_t ViewSchedule::views_per_sample() const {
  size_t n = 0;
  for (const ScheduledRequest& r : requests_) n += r.views;
  return n;
}

double ViewSchedule::forward_flops(const Architecture& model) const {
  double flops = 0;
  for (const ScheduledRequest& r : requests_)
    for (size_t view = 0; view < r.views; ++view) {
      const Architecture seen = at_side(model, view_side(r.request.plan, view));
      flops += seen.forward_flops(seen.tokens());
    }
  return flops;
}

size_t ViewSchedule::first_row(size_t request, size_t samples) const {
  size_t row = 0;
  for (size_t i = 0; i < request; ++i) row += requests_[i].views * samples;
  return row;
}

}  // namespace fungi
