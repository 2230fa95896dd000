// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/presets.h"

#include <fmt/format.h>

namespace fungi {

const char* to_string(Preset preset) {
  switch (preset) {
    case Preset::native:
      return "native";
    case Preset::paper:
      return "paper";
    case Preset::lib:
      return "lib";
    case Preset::fast:
      return "fast";
  }
  return "";
}

Preset parse_preset(std::string_view name) {
  for (const Preset preset : kAllPresets)
    if (name == to_string(preset)) return preset;
  fail(fmt::format("there is no preset '{}'", name), "preset", "choose from: native, paper, lib, fast");
}

namespace {

[[noreturn]] void fail_views(const char* objective, SampleKind kind) {
  fail(fmt::format("there are no views of this kind of sample for it yet: {}", to_string(kind)),
       objective, "leave it out; kl looks at any kind of sample as a whole");
}

// Where the curves of docs/fast.md bend; tools/make_fast_results.py says which they are.
constexpr ImageCrops kFastCrops{.local_crops = 6, .local_size = 96};
constexpr ImagePatches kFastPatches{.stride_scale = 3};

}  // namespace

// DEVIATION: the paper writes KL(q || U), both code bases compute KL(U || q) / D. All presets take
// the code's; at τ = 15 the normalised gradients coincide. direction=model_first gives the paper's.
KlParameters kl_parameters(Preset preset, SampleKind kind) {
  KlParameters parameters;
  // DEVIATION: lib has temperature 1 where the paper and its experiments have 15.
  if (preset == Preset::lib) parameters.temperature = 1;
  if (kind != SampleKind::image) {
    parameters.views = WholeView{};
  } else if (preset == Preset::lib) {
    // DEVIATION: lib squashes the image to a square before the centre crop, and ignores the
    // backbone's own pixel statistics.
    parameters.views = WholeImage{.statistics = ImageStatistics::imagenet, .squash = true};
  }
  return parameters;
}

DinoParameters dino_parameters(Preset preset, SampleKind kind) {
  DinoParameters parameters;
  if (kind == SampleKind::text) {
    parameters.views = WordDeletions{.global_views = 2, .local_views = 10};
    return parameters;
  }
  if (kind == SampleKind::sound) {
    parameters.views = SoundShifts{.global_views = 2, .local_views = 10};
    return parameters;
  }
  if (kind != SampleKind::image) fail_views("dino", kind);
  // DEVIATION: paper and lib ignore the backbone's own pixel statistics.
  if (follows_reference(preset))
    parameters.views = ImageCrops{.statistics = ImageStatistics::imagenet};
  if (preset == Preset::fast) parameters.views = kFastCrops;
  return parameters;
}

SimclrParameters simclr_parameters(Preset preset, SampleKind kind) {
  SimclrParameters parameters;
  if (kind == SampleKind::text) {  // SPEC 5.6
    parameters.width = 256;
    parameters.negative_views = 2;
    parameters.views = WordDeletions{};
    // DEVIATION: the experiments on texts forget the temperature inside the log-sum-exp, too.
    if (follows_reference(preset)) parameters.denominator_temperature = 1;
    return parameters;
  }
  if (kind == SampleKind::sound) {  // SPEC 5.7
    parameters.width = 768;
    parameters.negatives = 64;
    parameters.negative_views = 2;
    parameters.views = SoundShifts{};
    // DEVIATION: the experiments on sounds forget the temperature inside the log-sum-exp, too.
    if (follows_reference(preset)) parameters.denominator_temperature = 1;
    return parameters;
  }
  if (kind != SampleKind::image) fail_views("simclr", kind);
  // DEVIATION: paper and lib ignore the backbone's own pixel statistics.
  if (follows_reference(preset))
    parameters.views = ImagePatches{.statistics = ImageStatistics::imagenet};
  if (preset == Preset::fast) parameters.views = kFastPatches;
  if (preset == Preset::lib) {
    // DEVIATION: lib forgets the temperature inside the log-sum-exp.
    parameters.denominator_temperature = 1;
    // DEVIATION: lib takes its negatives from 64 training samples, the paper from 256.
    parameters.negatives = 64;
  }
  return parameters;
}

// lib has no DeepCluster; its preset follows the paper's experiments.
DeepClusterParameters deepcluster_parameters(Preset preset, SampleKind kind) {
  DeepClusterParameters parameters;
  if (kind == SampleKind::text) {
    parameters.views = WordDeletions{.global_views = 2, .local_views = 6};
    return parameters;
  }
  if (kind == SampleKind::sound) {
    parameters.views = SoundShifts{.global_views = 2, .local_views = 6};
    return parameters;
  }
  if (kind != SampleKind::image) fail_views("deepcluster", kind);
  // DEVIATION: ImageNet's statistics for every backbone, the first deviation 0.228 for 0.229.
  if (follows_reference(preset))
    std::get<ImageCrops>(parameters.views).statistics = ImageStatistics::deepcluster;
  return parameters;
}

// Neither reference has code for iBOT; the presets differ as they do for DINO.
IbotParameters ibot_parameters(Preset preset, SampleKind kind) {
  if (kind != SampleKind::image) fail_views("ibot", kind);
  IbotParameters parameters;
  parameters.views = dino_parameters(preset, kind).views;
  return parameters;
}

// DEVIATION: the paper's formula has one temperature; its code, and all presets, leave it out
// inside the log-sum-exp (SPEC 2.4). denominator_temperature=0.07 is the formula.
PatchSimclrParameters patch_simclr_parameters(Preset preset) {
  PatchSimclrParameters parameters;
  if (!follows_reference(preset)) return parameters;
  // DEVIATION: five neighbours are looked for, two used, and those are scrambled; the support is as
  // large as the smallest memory of the experiments.
  parameters.neighbours = 5;
  parameters.scrambled = true;
  parameters.support = 102400;
  return parameters;
}

// The paper names it as future work; there is nothing to follow.
MlmParameters mlm_parameters(Preset, SampleKind kind) {
  if (kind != SampleKind::text) fail_views("mlm", kind);
  return {};
}

}  // namespace fungi
