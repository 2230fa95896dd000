// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/modality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fungi/base/error.h"
#include "fungi/feature/image_modality.h"
#include "fungi/feature/sound_modality.h"
#include "fungi/feature/text_modality.h"

namespace fungi {

SampleKind sample_kind(const Architecture& architecture) {
  switch (architecture.input) {
    case InputKind::image:
      return SampleKind::image;
    case InputKind::filter_bank:
      return SampleKind::sound;
    case InputKind::token_ids:
      return SampleKind::text;
  }
  return SampleKind::own;
}

std::shared_ptr<const Modality> modality_for(const Architecture& a, Preset preset,
                                             const TextOptions& text,
                                             const std::filesystem::path& model,
                                             const SoundOptions& sound) {
  switch (sample_kind(a)) {
    case SampleKind::image:
      return std::make_shared<ImageModality>(a, evaluation_transform(a, preset));
    case SampleKind::text:
      return std::make_shared<TextModality>(text_reading(a, text, model));
    case SampleKind::sound:
      return std::make_shared<SoundModality>(sound_reading(a, sound));
    default:
      fail(fmt::format("a {} backbone reads {}, not images, texts or sounds", a.family,
                       to_string(a.input)),
           "extract",
           "give a model of images, texts or sounds; a program may bring a Modality of its own");
  }
}

SampleKind sample_kind(const InputSettings& settings) {
  if (std::holds_alternative<TextSettings>(settings)) return SampleKind::text;
  if (std::holds_alternative<SoundSettings>(settings)) return SampleKind::sound;
  return std::holds_alternative<ImageSettings>(settings) ? SampleKind::image : SampleKind::own;
}

DatasetOptions data_options(const InputSettings& settings) {
  if (const auto* sound = std::get_if<SoundSettings>(&settings))
    return {.samples = SampleKind::sound,
            .seconds = sound_view_seconds({sound->front_end, sound->window}),
            .window = sound->window};
  return {.samples = sample_kind(settings)};
}

DecodeOptions decode_options(const InputSettings& settings) {
  const auto* image = std::get_if<ImageSettings>(&settings);
  const auto* sound = std::get_if<SoundSettings>(&settings);
  return image   ? image->decode
         : sound ? DecodeOptions{.allow_truncated = sound->allow_truncated}
                 : DecodeOptions{};
}

TextOptions text_options(const InputSettings& settings) {
  TextOptions options;
  if (const auto* text = std::get_if<TextSettings>(&settings))
    options.max_tokens = text->max_tokens, options.prefix = text->prefix;
  return options;
}

SoundOptions sound_options(const InputSettings& settings) {
  const auto* sound = std::get_if<SoundSettings>(&settings);
  return {.window = sound ? sound->window : 0};
}

StatedFacts stated_facts(const InputSettings& settings, const Architecture& a) {
  if (const auto* sound = std::get_if<SoundSettings>(&settings)) {
    const SoundFrontEnd& f = sound->front_end;
    StatedFacts facts{{"frames", std::to_string(f.frames)}};
    if (f.kind == SoundFrontEnd::Kind::kaldi && f.normalise)
      facts["mean"] = fmt::format("{}", f.mean), facts["std"] = fmt::format("{}", f.std);
    return facts;
  }
  const auto* image = std::get_if<ImageSettings>(&settings);
  if (!image) return {};
  const Preprocess& p = image->preprocess;
  StatedFacts facts{{"mean", fmt::format("{}", fmt::join(p.mean, ","))},
                    {"std", fmt::format("{}", fmt::join(p.std, ","))},
                    {"resize", std::to_string(p.resize_size)},
                    {"interpolation", p.filter == Filter::bilinear ? "bilinear" : "bicubic"},
                    {"squash", p.resize == Preprocess::Resize::squash ? "yes" : "no"},
                    {"crop", p.floor_crop ? "floor" : "even"}};
  if (a.family == "dinov2" && a.dialect == "huggingface")  // its crop decides
    facts["size"] = std::to_string(p.input_size);
  if (a.family == "dino" || a.family == "vit") facts["family"] = a.family;
  return facts;
}

}  // namespace fungi
