// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/modality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fungi/base/error.h"
#include "fungi/feature/image_modality.h"

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

std::shared_ptr<const Modality> modality_for(const Architecture& a, Preset preset) {
  if (sample_kind(a) == SampleKind::image)
    return std::make_shared<ImageModality>(evaluation_transform(a, preset));
  fail(fmt::format("a {} backbone reads {}, not images", a.family, to_string(a.input)), "extract",
       "give a model of images; a program may bring a Modality of its own");
}

DecodeOptions decode_options(const InputSettings& settings) {
  const auto* image = std::get_if<ImageSettings>(&settings);
  return image ? image->decode : DecodeOptions{};
}

StatedFacts stated_facts(const InputSettings& settings, const Architecture& a) {
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
