// SPDX-License-Identifier: Apache-2.0
// A model opened as what looks at it wants it: asked of the objectives themselves; and projections
// for the gradients of its layers.
#include "fungi/feature/extractor.h"
#include "fungi/feature/extractor_state.h"
#include "fungi/objective/factory.h"

namespace fungi {

BackboneOptions backbone_for(const ExtractorOptions& options, BackboneOptions backbone) {
  if (options.objectives.empty() && options.own.empty())
    backbone.layer = "none", backbone.layers.clear();
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
  if (options.preset == Preset::fast && !backbone.precision) backbone.precision = Precision::int8;
  return backbone;
}

void Extractor::State::make_projections() {
  const Architecture& a = backbone.architecture();
  if (options.projection == ProjectionKind::matrix && by_layer())
    fail("a projection matrix is that of one layer, and here each has its own", "layers",
         "choose another projection, or one layer");
  for (const LayerId& layer : backbone.layers()) {
    ProjectionOptions p;
    p.kind = options.projection;
    // DEVIATION: the paper's code has one matrix per architecture, with as many rows as the model
    // is wide, also where the embedding is narrower: CLIP and EVA-CLIP (SPEC 1.5).
    const size_t usual = options.preset == Preset::paper ? a.width : a.embedding_width;
    p.rows = options.projection_rows ? options.projection_rows : usual;
    p.seed = options.projection_seed.value_or(options.seed);
    p.matrix = std::move(options.projection_matrix);
    p.precision = projection_precision(*backbone.options().precision);
    projections.push_back(Projection::make(
        std::move(p), {layer_outputs(a, layer), layer_inputs(a, layer), layer_bias(a, layer)}));
  }
}

Extractor Extractor::open(const std::filesystem::path& model, ExtractorOptions options, Pool& pool,
                          BackboneOptions backbone) {
  const BackboneOptions wanted = backbone_for(options, std::move(backbone));
  return Extractor(Backbone::open(model, wanted, pool), std::move(options), pool);
}

}  // namespace fungi
