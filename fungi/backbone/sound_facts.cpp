// SPDX-License-Identifier: Apache-2.0
// How a model of sounds hears, which stands in no tensor: its family's front end, the file that
// Hugging Face's feature extractors leave beside the weights, and the user's words (--set
// mean=-6.63 std=5.36 frames=512).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/backbone/names.h"
#include "fungi/base/json_fields.h"

namespace fungi {
namespace {

using nlohmann::json;

constexpr const char* kFile = "preprocessor_config.json";

// As the file says it, or Error where the model or what is done here is otherwise.
template <class T>
void expect(JsonFields& file, const char* key, T expected) {
  if (!file.has(key)) return;
  T found{};
  file.read(key, found);
  if (found != expected) file.refuse(key, fmt::format("{}, as of this model", expected));
}

void read_ast(JsonFields& file, bool stated_length, Architecture& a) {
  SoundFrontEnd& f = a.sound.front_end;
  expect(file, "num_mel_bins", a.input_h);
  if (!stated_length) expect(file, "max_length", a.input_w);
  if (file.has("do_normalize")) file.read("do_normalize", f.normalise);
  if (file.has("mean")) file.read("mean", f.mean);
  if (file.has("std")) file.read("std", f.std);
}

void read_whisper(JsonFields& file, Architecture& a) {
  const SoundFrontEnd& f = a.sound.front_end;
  expect(file, "feature_size", a.input_h);
  expect(file, "hop_length", f.hop);
  expect(file, "n_fft", f.fft);
  expect(file, "dither", 0.0);
}

float stated_number(const std::string& key, const std::string& text) {
  char* end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value))
    fail(fmt::format("expected a number, found '{}'", text), "`stated_facts[" + key + "]`");
  return value;
}

}  // namespace

void set_front_end(Architecture& a, SoundFrontEnd front_end, const std::string& source,
                   bool assumed) {
  a.sound.front_end = front_end;
  a.sound.source = source, a.sound.assumed = assumed;
}

void read_feature_extractor(const Checkpoint& checkpoint, const StatedFacts& facts,
                            Architecture& a) {
  if (a.input != InputKind::filter_bank) return;
  SoundFrontEnd& f = a.sound.front_end;
  f.frames = a.input_w, f.bins = a.input_h;
  if (f.kind != SoundFrontEnd::Kind::mfcc) f.mels = f.bins;
  const json all = json_beside(checkpoint, kFile);
  if (all.is_null() || f.kind == SoundFrontEnd::Kind::mfcc) return;
  const bool whisper = f.kind == SoundFrontEnd::Kind::whisper;
  JsonFields file(all, "", checkpoint.path() + ": " + kFile);
  expect(file, "feature_extractor_type",
         std::string(whisper ? "WhisperFeatureExtractor" : "ASTFeatureExtractor"));
  expect(file, "sampling_rate", f.rate);
  if (whisper)
    read_whisper(file, a);
  else
    read_ast(file, facts.contains("size") || facts.contains("frames"), a);
  a.sound.source = kFile, a.sound.assumed = false;
}

void state_front_end(const StatedFacts& facts, Architecture& a) {
  const bool bank = a.input == InputKind::filter_bank;
  if (!bank && facts.contains("frames"))
    fail("only models of sounds have frames", "`stated_facts[frames]`", "leave it out");
  if (!bank) return;
  for (const char* key : {"resize", "squash", "crop", "interpolation"})
    if (facts.contains(key))
      fail("only pictures have an evaluation transform", "`stated_facts[" + std::string(key) + "]`",
           "leave it out");
  SoundFrontEnd& f = a.sound.front_end;
  for (const auto& [key, value] : {std::pair("mean", &f.mean), std::pair("std", &f.std)}) {
    const auto stated = facts.find(key);
    if (stated == facts.end()) continue;
    if (f.kind != SoundFrontEnd::Kind::kaldi)
      fail(fmt::format("the front end of {} has no mean and std", a.family),
           "`stated_facts[" + std::string(key) + "]`", "leave it out");
    *value = stated_number(key, stated->second);
    a.sound.stated_statistics = true;
  }
  if (!(std::isfinite(f.mean) && std::isnormal(f.std) && f.std > 0))
    fail(fmt::format("expected a mean and a positive std of the filter banks, found {} and {}",
                     f.mean, f.std),
         a.sound.stated_statistics ? "`stated_facts[std]`" : kFile);
  if (facts.contains("mean") && facts.contains("std"))
    a.sound.source = "stated", a.sound.assumed = false;
  else if (a.sound.stated_statistics)
    a.sound.source += ", in part stated";
}

}  // namespace fungi
