// SPDX-License-Identifier: Apache-2.0
// Images. Internal to this room; modality.h gives it.
#pragma once

#include "fungi/feature/modality.h"

namespace fungi {

class ImageModality final : public Modality {
 public:
  ImageModality(const Architecture& model, const Preprocess& evaluation)
      : model_(model), evaluation_(evaluation) {}
  SampleKind kind() const override { return SampleKind::image; }
  size_t views(const ViewPlan& plan) const override;
  std::unique_ptr<ViewMaker> maker(const ViewPlan& plan) const override;
  InputSettings settings(const DecodeOptions& decode) const override {
    return ImageSettings{decode, evaluation_};
  }

  // What a plan makes of it: with the statistics that the plan wants.
  Preprocess preprocess(const ViewPlan& plan) const;

 private:
  Architecture model_;
  Preprocess evaluation_;
};

}  // namespace fungi
