// SPDX-License-Identifier: Apache-2.0
// What kind of sample a model looks at, and how: joins its architecture with the view makers of
// that kind. Extractor and chunk worker know samples and views only through it.
//
// A kind of your own: derive from Modality and ViewMaker, and from Dataset, whose samples are a
// std::any; see examples/06_own_modality.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fungi/backbone/architecture.h"
#include "fungi/feature/settings.h"
#include "fungi/input/dataset.h"
#include "fungi/input/preprocess.h"
#include "fungi/token/tokenizer.h"
#include "fungi/view/view.h"

namespace fungi {

// Const and shared by threads.
class Modality {
 public:
  virtual ~Modality() = default;
  virtual SampleKind kind() const = 0;
  // Views of every sample under a plan. Error where the kind has no such views.
  virtual size_t views(const ViewPlan& plan) const = 0;
  // Of a plan that views() has accepted; one for each thread.
  virtual std::unique_ptr<ViewMaker> maker(const ViewPlan& plan) const = 0;
  // What decides about the views beside their plans and the model, for a store's manifest.
  virtual InputSettings settings(const DecodeOptions& decode) const = 0;
  // Of sounds: how many seconds of one the views look at; 0: all of it.
  virtual double seconds() const { return 0; }
};

// How texts are read.
struct TextOptions {
  size_t max_tokens = 0;  // of a view, the model's own among them; 0: as many as the model reads
  std::string prefix;     // before every text, as some models want it: "query: "
  std::shared_ptr<const Tokenizer> tokenizer;  // null: the one that lies beside the model
};

// How sounds are looked at.
struct SoundOptions {
  double window = 0;  // so many seconds of each; 0: as many as the model looks at
};

// What the model is fed. Error where the library has no views of that kind: give a Modality of your
// own (ExtractorOptions::modality).
SampleKind sample_kind(const Architecture& architecture);
// model: where it lies, and beside it its tokeniser.
std::shared_ptr<const Modality> modality_for(const Architecture& architecture, Preset preset,
                                             const TextOptions& text = {},
                                             const std::filesystem::path& model = {},
                                             const SoundOptions& sound = {});

// How to open a data set whose samples are looked at with such settings.
DatasetOptions data_options(const InputSettings& settings);

// What the samples of such settings are: pictures, texts, or of your own.
SampleKind sample_kind(const InputSettings& settings);
// How samples of such settings are decoded, and texts read.
DecodeOptions decode_options(const InputSettings& settings);
TextOptions text_options(const InputSettings& settings);
SoundOptions sound_options(const InputSettings& settings);
// Facts to be stated so that a model looks at samples as these settings say, wherever the files lie
// now that told how: its name or a config.json beside it.
StatedFacts stated_facts(const InputSettings& settings, const Architecture& architecture);

// An image model's evaluation transform under a preset (SPEC 3.4).
Preprocess evaluation_transform(const Architecture& architecture, Preset preset);

}  // namespace fungi
