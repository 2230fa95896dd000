// SPDX-License-Identifier: Apache-2.0
// Objectives by name, as the command line and manifests write them: "kl",
// "simclr:temperature=0.07,negatives=64".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/objective/objective.h"
#include "fungi/objective/presets.h"

namespace fungi {

struct ObjectiveContext {
  size_t embedding_width = 0;
  size_t token_width = 0;  // of the final patch tokens; only iBOT asks
  uint64_t seed = 42;
  Preset preset = Preset::native;
  SampleKind kind = SampleKind::image;
  std::shared_ptr<const WordHead> word_head = nullptr;  // the model's; only mlm asks
  // Of a model of pictures, to which a preset's smaller views are fitted; 0: they stay as they are.
  size_t input_size = 0, patch_size = 1;
};

std::vector<std::string> objective_names();
// Those that have views of such samples.
std::vector<std::string> objective_names(SampleKind kind);

// `name[_label][:parameter=value,...]`; parameters not named come from the preset. For simclr, a
// temperature given alone also becomes the denominator's, unless the preset keeps the two apart.
// A label makes another one of the kind beside the first, with heads of its own (drawn from seed
// and label) on the same views: "dino", "dino_warm:student_temperature=0.2". Throws Error naming
// the choices.
std::unique_ptr<Objective> make_objective(std::string_view specification,
                                          const ObjectiveContext& context);

// The same where the kind of sample is not known yet: of the first kind that has such parameters.
std::unique_ptr<Objective> make_objective_of_any_kind(std::string_view specification,
                                                      ObjectiveContext context);

// The specifications in a text that lists some, as people type it:
// "kl,simclr:negatives=64,width=96" are two. After a comma, name=value belongs to the objective
// before it; anything else begins the next. Error where a piece is missing or belongs to none;
// names and values are make_objective()'s to judge.
std::vector<std::string> split_objectives(std::string_view text);

// All parameters of an objective with the values a preset gives them, for help texts.
std::vector<Parameter> default_parameters(std::string_view name, Preset preset,
                                          SampleKind kind = SampleKind::image);

}  // namespace fungi
