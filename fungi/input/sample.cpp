// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/sample.h"

#include <fmt/format.h>

#include "fungi/base/utf8.h"
#include "fungi/input/sound.h"

namespace fungi {

SampleKind kind_of(const Sample& sample) {
  constexpr SampleKind kKinds[] = {SampleKind::image, SampleKind::text, SampleKind::sound,
                                   SampleKind::own};
  static_assert(std::variant_size_v<Sample> == std::size(kKinds));
  return kKinds[sample.index()];
}

size_t bytes_of(const Sample& sample) {
  if (const auto* image = std::get_if<Image>(&sample)) return image->rgb.size();
  if (const auto* text = std::get_if<Text>(&sample)) return text->utf8.size();
  if (const auto* sound = std::get_if<Sound>(&sample)) return sound->samples.size() * sizeof(float);
  return 0;
}

void check(const Text& text, const std::string& place) {
  if (const size_t at = text.utf8.find('\0'); at != std::string::npos)
    fail(fmt::format("expected a text, found a NUL byte behind {} others", at), place,
         "take the NUL byte out");
  if (const auto at = first_bad_byte(text.utf8))
    fail(describe_bad_byte(text.utf8, *at), place,
         "save the file as UTF-8: 'iconv -f LATIN1 -t UTF-8 FILE > NEW' where it is Latin-1");
}

void check(const Sample& sample) {
  if (const auto* image = std::get_if<Image>(&sample)) check(*image);
  if (const auto* text = std::get_if<Text>(&sample)) check(*text);
  if (const auto* sound = std::get_if<Sound>(&sample)) check(*sound);
}

namespace {

template <class Kind>
const Kind& get(const Sample& sample, const char* wanted) {
  if (const auto* found = std::get_if<Kind>(&sample)) return *found;
  fail(fmt::format("expected {}, found a sample of the kind {}", wanted,
                   to_string(kind_of(sample))),
       "sample", "use a model that looks at what the data set holds");
}

}  // namespace

const Image& image_of(const Sample& sample) { return get<Image>(sample, "an image"); }
const Text& text_of(const Sample& sample) { return get<Text>(sample, "a text"); }
const Sound& sound_of(const Sample& sample) { return get<Sound>(sample, "a sound"); }

}  // namespace fungi
