// SPDX-License-Identifier: Apache-2.0
// What objectives and preset want of a backbone, asked of the objectives themselves.
#include "fungi/feature/extractor.h"
#include "fungi/objective/factory.h"

namespace fungi {

BackboneOptions backbone_for(const std::vector<std::string>& objectives, Preset preset,
                             BackboneOptions options) {
  if (objectives.empty()) options.layer = "none";
  for (const std::string& specification : objectives)  // of any width: what they want is the same
    options.tokens |=
        make_objective(specification, {.embedding_width = 1, .token_width = 1, .preset = preset})
            ->wants_tokens();
  options.mha_input_as_activation |= preset == Preset::paper;
  options.clip_with_gelu |= preset == Preset::paper;
  return options;
}

}  // namespace fungi
