// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "fungi/fungi.h"

int main() {
  fungi::Pool pool(1);
  const auto backbone = fungi::Backbone::assemble(fungi::named_architecture("vit_tiny_patch16_224"),
                                                  fungi::RandomTensors(1), {}, pool);
  fungi::Matrix<float> pixels(1, 3 * 224 * 224), embedding(1, 192);
  fungi::Workspace workspace;
  backbone.forward(fungi::Inputs::images(pixels), workspace, embedding);
  std::printf("%s: %zu numbers\n", backbone.kernel().name, embedding.cols());
  return embedding(0, 0) == embedding(0, 0) ? 0 : 1;
}
