// SPDX-License-Identifier: Apache-2.0
// The only file that knows soxr.
#include <fmt/format.h>

#include <cmath>

#include "fungi/base/error.h"
#include "fungi/input/sound.h"

#ifdef FUNGI_HAVE_SOXR
#include <soxr.h>
#endif

namespace fungi {

std::string resampler() { return "soxr HQ"; }

#ifdef FUNGI_HAVE_SOXR
namespace {

std::vector<float> convert(std::span<const float> samples, double from, double to) {
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_io_spec_t types = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  const double expected = std::ceil(double(samples.size()) * to / from);
  std::vector<float> out(size_t(expected) + 1);
  size_t used = 0, made = 0;
  const soxr_error_t error = soxr_oneshot(from, to, 1, samples.data(), samples.size(), &used,
                                          out.data(), out.size(), &made, &types, &quality,
                                          &one_thread);
  if (error)
    fail(fmt::format("cannot go from {} to {} samples per second: {}", from, to,
                     soxr_strerror(error)),
         "resample");
  out.resize(made);
  return out;
}

}  // namespace
#else
namespace {

std::vector<float> convert(std::span<const float>, double from, double to) {
  fail(fmt::format("the sound has {} samples per second and the model wants {}; this program was "
                   "built without soxr, which converts one to the other",
                   from, to),
       "resample",
       "install libsoxr-dev and build it again with -DFUNGI_SOXR=ON, or convert the file");
}

}  // namespace
#endif

std::vector<float> resample(std::span<const float> samples, double from, double to) {
  if (!(from > 0 && to > 0 && std::isfinite(from) && std::isfinite(to)))
    fail(fmt::format("expected two rates, found {} and {}", from, to), "resample");
  if (from == to) return {samples.begin(), samples.end()};
  return convert(samples, from, to);
}

}  // namespace fungi
