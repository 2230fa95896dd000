// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/sound_statistics.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "fungi/base/error.h"
#include "fungi/feature/sound_modality.h"

namespace fungi {
namespace {

struct Known {
  const char *name, *frames, *mean, *std;
};
constexpr Known kKnown[] = {{"esc50", "512", "-6.6268077", "5.358466"},
                            {"speechcommands", "128", "-6.845978", "5.5654526"}};

struct Sums {
  double count = 0, sum = 0, squares = 0;
};

}  // namespace

StatedFacts sound_statistics(const std::string& name) {
  for (const Known& known : kKnown)
    if (name == known.name)
      return {{"frames", known.frames}, {"mean", known.mean}, {"std", known.std}};
  fail(fmt::format("there are no statistics '{}'", name), "`statistics`",
       "choose from: model, measure, esc50, speechcommands");
}

std::vector<std::string> sound_statistics_names() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  return names;
}

DatasetOptions sound_data(const Architecture& architecture, const SoundOptions& options) {
  return {.samples = SampleKind::sound,
          .seconds = sound_view_seconds(sound_reading(architecture, options)),
          .window = options.window};
}

StatedFacts MeasuredSounds::facts() const {
  return {{"mean", fmt::format("{:.7g}", mean)}, {"std", fmt::format("{:.7g}", std)}};
}

MeasuredSounds measure_sounds(const Dataset& data, const Architecture& a,
                              const SoundOptions& options, Pool& pool,
                              const std::function<void(size_t, size_t)>& progress) {
  if (a.input != InputKind::filter_bank || a.sound.front_end.kind != SoundFrontEnd::Kind::kaldi)
    fail(fmt::format("the model of the family {} is fed nothing that has a mean and std", a.family),
         "`statistics`", "leave it out");
  SoundReading reading = sound_reading(a, options);
  reading.front_end.normalise = false;
  std::vector<SoundViews> views;
  for (unsigned i = 0; i < pool.threads(); ++i) views.emplace_back(WholeView{}, reading);
  std::vector<InputBuffer> rows(pool.threads());
  std::vector<Sums> sums(data.size());
  std::mutex counting;
  size_t done = 0;
  pool.parallel_for(data.size(), 1, [&](size_t i, size_t, unsigned worker) {
    try {
      const Sample sample = data.decode(i, data.read(i));
      views[worker].open(sample, 0);
      rows[worker].clear();
      views[worker].write(0, rows[worker]);
      const Inputs inputs = rows[worker].inputs();
      const size_t held = inputs.frames[0] * reading.front_end.bins;
      for (size_t j = 0; j < held; ++j) {
        const double x = inputs.pixels.row(0)[j];
        sums[i].sum += x, sums[i].squares += x * x;
      }
      sums[i].count = double(held);
    } catch (const Exhausted&) {
      throw;
    } catch (const Error&) {  // extraction will report it
      sums[i] = {};
    }
    if (!progress) return;
    const std::lock_guard lock(counting);
    progress(++done, data.size());
  });
  MeasuredSounds out;
  Sums all;
  for (const Sums& s : sums) {
    all.count += s.count, all.sum += s.sum, all.squares += s.squares;
    ++(s.count > 0 ? out.sounds : out.failed);
  }
  if (out.sounds == 0)
    fail(fmt::format("none of the {} sounds can be used", data.size()), "`statistics`",
         "extract without it, and see why in failed.jsonl");
  out.mean = all.sum / all.count;
  const double variance = all.squares / all.count - out.mean * out.mean;
  if (!(variance > 1e-12))
    fail("all numbers of the filter banks are the same", "`statistics`", "leave it out");
  out.std = std::sqrt(variance);
  return out;
}

StatedFacts chosen_statistics(const std::string& choice, StatedFacts stated,
                              const StoreManifest* continued,
                              const std::function<MeasuredSounds()>& measure) {
  if (choice == "model") return stated;
  if (choice != "measure") {
    StatedFacts known = sound_statistics(choice);
    known.merge(stated);
    return known;
  }
  if (continued && has_settings(continued->spec)) {
    const StatedFacts own = read_settings(continued->spec, "the store").stated;
    for (const char* fact : {"mean", "std"})
      if (const auto at = own.find(fact); at != own.end()) stated.insert(*at);
    if (stated.contains("mean") && stated.contains("std")) return stated;
  }
  stated.merge(measure().facts());
  return stated;
}

std::string describe(const MeasuredSounds& measured) {
  return fmt::format("mean and std of the filter banks, measured on {} sounds: {:.7g}, {:.7g}",
                     measured.sounds, measured.mean, measured.std);
}

}  // namespace fungi
