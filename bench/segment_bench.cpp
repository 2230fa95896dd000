// SPDX-License-Identifier: Apache-2.0
// Patch tokens and patch features of random pictures on one thread; bench/compare_segment.py runs
// it beside its peer.
//   segment_bench MODEL SIZE PRECISION OBJECTIVE PROJECTION [facts] [repeats]
// MODEL: a checkpoint, or random weights by name (`fungi bench`); facts: family=dino,heads=3 or "".
// Prints JSON: seconds for one picture on the processor and on the clock, the best of the repeats
// after one that warms up, and the stages.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <string>

#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "fungi/objective/parameters.h"
#include "fungi/segment/patch_features.h"

namespace {

using namespace fungi;

// Seconds of this thread on the processor, and on the clock.
struct Seconds {
  double processor = std::numeric_limits<double>::infinity(), clock = processor;
};

template <class Work>
void measure(Work work, Seconds& best) {
  const auto now = [](clockid_t id) {
    timespec time{};
    clock_gettime(id, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  const double processor = now(CLOCK_THREAD_CPUTIME_ID), clock = now(CLOCK_MONOTONIC);
  work();
  best.processor = std::min(best.processor, now(CLOCK_THREAD_CPUTIME_ID) - processor);
  best.clock = std::min(best.clock, now(CLOCK_MONOTONIC) - clock);
}

PatchFeatures open(const std::string& model, PatchFeatureOptions options, BackboneOptions backbone,
                   Pool& pool) {
  if (std::filesystem::exists(model))
    return PatchFeatures::open(model, std::move(options), pool, backbone);
  Architecture a = named_architecture(model);
  a.input_h = options.height, a.input_w = options.width;
  Backbone random =
      Backbone::assemble(a, RandomTensors(1), patch_backbone(options, backbone), pool);
  return PatchFeatures(std::move(random), std::move(options));
}

void run(int argc, char** argv) {
  const size_t size = std::stoul(argv[2]);
  Pool pool;
  BackboneOptions backbone;
  if (std::string(argv[3]) != "auto") backbone.precision = parse_precision(argv[3]);
  if (argc > 6 && *argv[6])
    for (const auto& [key, value] : parse_overrides(argv[6], "facts"))
      backbone.stated_facts[key] = value;
  const int repeats = argc > 7 ? std::atoi(argv[7]) : 5;
  PatchFeatures features = open(argv[1],
                                {.height = size,
                                 .width = size,
                                 .objective = argv[4],
                                 .projection = parse_projection(argv[5])},
                                backbone, pool);

  Matrix<float> pixels(1, features.pixel_count()),
      tokens(features.patches(), features.embedding_width()),
      rows(features.patches(), features.width());
  for (size_t i = 0; i < pixels.cols(); ++i)
    pixels(0, i) = float(RandomStream(7, "bench").uniform(i) * 4 - 2);
  PatchScratch scratch;
  if (features.wants_support()) {
    Matrix<float> support(features.support_rows(), features.embedding_width());
    for (size_t i = 0; i < support.rows(); ++i)
      for (size_t j = 0; j < support.cols(); ++j)
        support(i, j) = float(RandomStream(8, "support", i).normal(j));
    normalise_rows(support, support);
    features.set_support(std::move(support), pool);
  }
  const std::vector<std::string> ids{"bench"};
  Seconds plain, whole;
  for (int i = 0; i <= repeats; ++i) {  // in turns, so that other work on the machine meets both
    Seconds warm_up;
    measure([&] { features.embed(pixels, scratch, tokens); }, i ? plain : warm_up);
    measure([&] { features.features(pixels, ids, scratch, rows); }, i ? whole : warm_up);
  }
  const Architecture& a = features.backbone().architecture();
  fmt::print(
      "{{\"kernel\": \"{}\", \"patches\": {}, \"width\": {}, \"processor\": {{\"tokens\": {}, "
      "\"features\": {}}}, \"clock\": {{\"tokens\": {}, \"features\": {}}}, \"gflop\": {}, "
      "\"peak_gflops\": {}, \"stages\": {{",
      features.backbone().kernel().name, features.patches(), features.width(), plain.processor,
      whole.processor, plain.clock, whole.clock, a.forward_flops(a.tokens()) / 1e9,
      kernel::measure_peak_gflops(features.backbone().kernel(), 1, 0.3));
  const char* separator = "";
  for (const auto& row : scratch.stages().rows()) {
    fmt::print("{}\"{}\": {}", separator, row.name, row.own / (repeats + 1));
    separator = ", ";
  }
  fmt::print("}}}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr,
               "segment_bench MODEL SIZE PRECISION OBJECTIVE PROJECTION [facts] [repeats]\n");
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
