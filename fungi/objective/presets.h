// SPDX-License-Identifier: Apache-2.0
// The parameter sets of the objectives: `native` is what is right, `paper` and `lib` repeat what
// the authors' experiments and their published library do (SPEC 0 and 8), `fast` is `native` with
// fewer and smaller views, and int8 where no precision is stated (docs/fast.md). What differs in
// their parameters stands in presets.cpp; what else does is marked DEVIATION where it is.
#pragma once

#include <initializer_list>
#include <string_view>

#include "fungi/objective/deepcluster.h"
#include "fungi/objective/dino.h"
#include "fungi/objective/ibot.h"
#include "fungi/objective/kl.h"
#include "fungi/objective/mlm.h"
#include "fungi/objective/patch_simclr.h"
#include "fungi/objective/simclr.h"

namespace fungi {

enum class Preset { native, paper, lib, fast };
inline constexpr std::initializer_list<Preset> kAllPresets = {Preset::native, Preset::paper,
                                                              Preset::lib, Preset::fast};
const char* to_string(Preset preset);
Preset parse_preset(std::string_view name);  // throws Error naming the choices

// Whether it does as a reference does: paper and lib.
constexpr bool follows_reference(Preset preset) {
  return preset == Preset::paper || preset == Preset::lib;
}

// Of each kind of sample. Error for those that have no such views.
KlParameters kl_parameters(Preset preset, SampleKind kind);
DinoParameters dino_parameters(Preset preset, SampleKind kind);
SimclrParameters simclr_parameters(Preset preset, SampleKind kind);
DeepClusterParameters deepcluster_parameters(Preset preset, SampleKind kind);
IbotParameters ibot_parameters(Preset preset, SampleKind kind);
// Of the patches of pictures alone.
PatchSimclrParameters patch_simclr_parameters(Preset preset);
MlmParameters mlm_parameters(Preset preset, SampleKind kind);

}  // namespace fungi
