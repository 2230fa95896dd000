// SPDX-License-Identifier: Apache-2.0
// A model opened as what looks at it wants it: asked of the objectives themselves.
#include "fungi/feature/extractor.h"
#include "fungi/objective/factory.h"

namespace fungi {

BackboneOptions backbone_for(const ExtractorOptions& options, BackboneOptions backbone) {
  if (options.objectives.empty() && options.own.empty()) backbone.layer = "none";
  const auto look = [&](const Objective& objective) {
    backbone.tokens |= objective.wants_tokens();
    backbone.word_head |= objective.wants_word_head();
  };
  for (const std::string& specification : options.objectives)  // whatever its width or its views
    look(*make_objective_of_any_kind(
        specification, {.embedding_width = 1, .token_width = 1, .preset = options.preset}));
  for (const auto& objective : options.own) look(*objective);
  backbone.mha_input_as_activation |= options.preset == Preset::paper;
  backbone.clip_with_gelu |= options.preset == Preset::paper;
  backbone.text_by_first_token |= options.preset == Preset::paper;
  return backbone;
}

Extractor Extractor::open(const std::filesystem::path& model, ExtractorOptions options, Pool& pool,
                          BackboneOptions backbone) {
  const BackboneOptions wanted = backbone_for(options, std::move(backbone));
  return Extractor(Backbone::open(model, wanted, pool), std::move(options), pool);
}

}  // namespace fungi
