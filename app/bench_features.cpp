// SPDX-License-Identifier: Apache-2.0
// The whole of fungi extract on random pictures or sounds in memory: views, forward, losses,
// backward and projection; no files.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>

#include "app/bench.h"
#include "fungi/base/random.h"
#include "fungi/feature/extractor.h"
#include "fungi/objective/factory.h"

namespace fungi::app {
namespace {

// What a model looks at: a usual photograph of the usual data sets, or ten seconds of noise.
Sample random_sample(SampleKind kind) {
  const RandomStream random(7, "bench");
  if (kind == SampleKind::sound) {
    Sound sound{std::vector<float>(160000), 16000};
    for (size_t i = 0; i < sound.samples.size(); ++i)
      sound.samples[i] = float(random.uniform(i) - 0.5);
    return sound;
  }
  Image picture{500, 375, std::vector<uint8_t>(500 * 375 * 3)};
  for (size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = uint8_t(random.bits(i));
  return picture;
}

class RandomSamples final : public Dataset {
 public:
  RandomSamples(size_t count, SampleKind kind) : sample_(random_sample(kind)) {
    for (size_t i = 0; i < count; ++i) ids_.push_back(std::to_string(i));
    labels_.assign(count, -1);
    samples_ = kind;
  }
  std::vector<uint8_t> read(size_t) const override { return {}; }
  Sample decode(size_t, std::span<const uint8_t>, const DecodeOptions&) const override {
    return sample_;
  }

 private:
  Sample sample_;
};

// Random negatives instead of embeddings of a training set: the same work, at once.
void prepare(Objective& objective, const Backbone& backbone, Preset preset, Pool& pool) {
  const Support support = objective.support();
  if (support.samples == 0 || objective.ready()) return;
  const size_t views = modality_for(backbone.architecture(), preset, {}, backbone.path())
                           ->views(support.views.plan);
  const size_t samples = std::min<size_t>(support.samples, 1024);
  Matrix<float> kept(samples * views,
                     objective.support_width(backbone.architecture().embedding_width));
  const RandomStream random(11, "bench");
  for (size_t i = 0; i < kept.rows() * kept.cols(); ++i) kept.data()[i] = float(random.normal(i));
  objective.prepare(kept, views, pool);
}

}  // namespace

BenchRate bench_features(const Backbone& backbone, const std::vector<std::string>& objectives,
                         Preset preset, double seconds, Pool& pool) {
  using Clock = std::chrono::steady_clock;
  ExtractorOptions options;
  options.objectives.clear();
  options.preset = preset;
  const Architecture& a = backbone.architecture();
  const SampleKind kind = sample_kind(a);
  for (const std::string& specification : objectives) {
    auto objective =
        make_objective(specification, {a.embedding_width, a.width, 42, preset, kind, nullptr,
                                       a.input_h, a.patch_h});
    prepare(*objective, backbone, preset, pool);
    options.own.push_back(std::move(objective));
  }
  Extractor extractor(backbone, std::move(options), pool);
  BenchRate rate;
  rate.views = extractor.views_per_sample();
  rate.gflop = extractor.forward_flops() / 1e9;
  const RandomSamples data(pool.threads() * std::max<size_t>(1, 16 / rate.views), kind);
  std::vector<size_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), size_t{0});
  const auto extract = [&](std::span<const size_t> some) {
    const StoreRows rows = extractor.extract(data, some);
    if (!rows.failures.empty())  // a failure is quick, and says nothing
      fail(rows.failures.front().reason, "bench", "choose other parameters");
  };
  extract(std::span(samples).first(pool.threads()));  // warm
  const auto start = Clock::now();
  const std::clock_t used = std::clock();
  double elapsed = 0;
  size_t done = 0;
  while (elapsed < seconds) {
    extract(samples);
    done += samples.size();
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  rate.samples_per_second = double(done) / elapsed;
  rate.samples_per_processor_second = double(done) * CLOCKS_PER_SEC / double(std::clock() - used);
  rate.stages = extractor.stages();
  return rate;
}

}  // namespace fungi::app
