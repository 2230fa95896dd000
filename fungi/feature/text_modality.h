// SPDX-License-Identifier: Apache-2.0
// Texts. Internal to this room; modality.h gives it.
#pragma once

#include "fungi/feature/modality.h"
#include "fungi/view/text_views.h"

namespace fungi {

class TextModality final : public Modality {
 public:
  explicit TextModality(TextReading reading) : reading_(std::move(reading)) {}
  SampleKind kind() const override { return SampleKind::text; }
  size_t views(const ViewPlan& plan) const override;
  std::unique_ptr<ViewMaker> maker(const ViewPlan& plan) const override;
  InputSettings settings(const DecodeOptions&) const override {
    return TextSettings{reading_.tokenizer->fingerprint(), reading_.longest, reading_.prefix};
  }

 private:
  TextReading reading_;
};

// What the model and the options make of a text. Errors: no tokeniser beside the model, one with
// more pieces than the model has words, more tokens than it has positions.
TextReading text_reading(const Architecture& architecture, const TextOptions& options,
                         const std::filesystem::path& model);

}  // namespace fungi
