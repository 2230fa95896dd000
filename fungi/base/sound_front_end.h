// SPDX-License-Identifier: Apache-2.0
// What a model of sounds is fed, as plain numbers: how a waveform becomes rows of filter bank
// energies or cepstral coefficients, one row per frame (SPEC 4.3, 10.3). A checkpoint tells it
// (preprocessor_config.json, or its family), input/filter_bank.h does it, a store's manifest keeps
// it. A view is [frames, bins], rows in the order of time, in Inputs::pixels.
#pragma once

#include <cstddef>

namespace fungi {

struct SoundFrontEnd {
  enum class Kind {
    // ln of mel energies as Kaldi has them: frames lie within the clip, each loses its mean, then
    // pre-emphasis 0.97; symmetric Hann window; power spectrum; triangles in mel. A clip that is
    // too short gets rows of zeros at its end, before (x - mean) / (2 std). AST, SSAST.
    kaldi,
    // log10 of mel energies (Slaney's mel and areas) of a clip that is first filled up with silence
    // or cut to frames x hop samples; frames centred, the clip mirrored at its ends; periodic Hann
    // window; no lower than 8 below the loudest; (x + 4) / 4. Whisper.
    whisper,
    // DCT (type II, times sqrt(2 / mels)) of ln of mel magnitudes, of which the first `bins` are
    // kept; periodic Hann window; the clip filled up with silence or cut first. KWT.
    mfcc,
  };
  Kind kind = Kind::kaldi;
  size_t rate = 16000;                        // samples per second: other clips are resampled
  size_t window = 400, hop = 160, fft = 512;  // in samples
  size_t mels = 128;                          // triangles
  size_t bins = 128;                          // numbers of a row: the triangles, or coefficients
  double low_hz = 20, high_hz = 8000;         // where the triangles begin and end
  size_t frames = 1024;                       // rows of a view: what is longer is cut
  // kaldi: what the model's authors measured on the logarithms, for (x - mean) / (2 std).
  float mean = -4.2677393f, std = 4.5689974f;
  bool normalise = true;  // kaldi
  bool centre = false;    // kaldi: the whole clip loses its mean first, as in AST's own code
  bool operator==(const SoundFrontEnd&) const = default;

  // Samples of the longest clip that is not cut.
  size_t longest() const { return kind == Kind::kaldi ? (frames - 1) * hop + window : span(); }
  // Samples that fill the view, where a shorter clip is filled up with silence.
  size_t span() const { return kind == Kind::whisper ? frames * hop : (frames - 1) * hop + window; }
};
const char* to_string(SoundFrontEnd::Kind kind);  // "kaldi", "whisper", "mfcc"

// The records of the known families. SSAST and AST as their own code has them; Hugging Face's
// ASTFeatureExtractor is the same with `centre` off.
SoundFrontEnd ast_front_end();
SoundFrontEnd whisper_front_end(size_t mels = 80);
SoundFrontEnd kwt_front_end();

}  // namespace fungi
