// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/modality.h"

#include <fmt/format.h>

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
       "give a model of images, or a Modality of your own (ExtractorOptions::modality)");
}

}  // namespace fungi
