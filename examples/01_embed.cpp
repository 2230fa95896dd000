// SPDX-License-Identifier: Apache-2.0
// One image through a backbone: 01_embed MODEL IMAGE [key=value ...]
#include <cstdio>

#include "fungi/fungi.h"

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: 01_embed MODEL IMAGE [key=value ...]\n"), 2;
  fungi::Pool pool;
  fungi::BackboneOptions options;
  for (int i = 3; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  const auto backbone = fungi::Backbone::open(argv[1], options, pool);

  // The evaluation transform that belongs to the checkpoint, then the forward pass.
  fungi::Preprocessor transform(
      fungi::evaluation_transform(backbone.architecture(), fungi::Preset::native));
  const size_t size = backbone.architecture().input_h;
  fungi::Matrix<float> pixels(1, 3 * size * size),
      embedding(1, backbone.architecture().embedding_width);
  transform.apply(fungi::read_image(argv[2]), {pixels.row(0), pixels.cols()});
  fungi::Workspace workspace;
  backbone.forward(fungi::Inputs::images(pixels), workspace, embedding);

  // Any gradient at the embedding can be carried back to the layer; here: how to make the embedding
  // longer.
  fungi::LayerGradient gradient;
  backbone.backward(embedding, workspace, gradient);
  std::printf(
      "%zu numbers, the first %.5f; the gradient of %s is %zu x %zu, given as %zu pair(s) of "
      "factors\n",
      embedding.cols(), embedding(0, 0), backbone.layer()->name().c_str(), gradient.b.cols(),
      gradient.a.cols(), gradient.a.rows());
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
