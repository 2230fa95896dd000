// SPDX-License-Identifier: Apache-2.0
// An objective of your own is one small class. This one asks: in which direction should the layer
// move to make the embedding longer? 03_own_objective MODEL DATA [key=value ...]
#include <cstdio>

#include "fungi/fungi.h"

class Longer : public fungi::Objective {
 public:
  std::string name() const override { return "longer"; }
  std::vector<fungi::ViewRequest> views() const override {
    return {{}};
  }  // the evaluation view, shared with the embedding
  double loss_and_gradient(const fungi::Latents& latents,
                           fungi::LatentGradients gradients) const override {
    double loss = 0;
    for (size_t j = 0; j < latents.pooled.cols; ++j) {
      const float x = latents.pooled(0, j);
      loss -= 0.5 * double(x) * x;
      gradients.pooled(0, j) = -x;
    }
    return loss;
  }
};

int main(int argc, char** argv) try {
  if (argc < 3)
    return std::fprintf(stderr, "usage: 03_own_objective MODEL DATA [key=value ...]\n"), 2;
  fungi::Pool pool;
  fungi::BackboneOptions options;
  for (int i = 3; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  fungi::ExtractorOptions extract;
  extract.objectives = {"kl"};
  extract.own.push_back(std::make_unique<Longer>());
  auto extractor = fungi::Extractor::open(argv[1], std::move(extract), pool, std::move(options));
  const auto data = fungi::open_dataset(argv[2]);
  const size_t first[] = {0};
  const auto rows = extractor.extract(*data, first);
  for (size_t b = 0; b < rows.blocks.size(); ++b)
    std::printf("%-10s %zu numbers, the first %.5f\n", extractor.blocks()[b].name.c_str(),
                rows.blocks[b].cols(), rows.blocks[b](0, 0));
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
