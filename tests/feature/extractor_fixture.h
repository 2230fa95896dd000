// SPDX-License-Identifier: Apache-2.0
// Made-up pictures and a tiny architecture for the tests of the extractor.
#pragma once

#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "fungi/feature/extractor.h"

namespace fungi::test {

// Pictures made of a formula; number 3 is broken when asked so.
class Pictures : public Dataset {
 public:
  explicit Pictures(size_t n, bool with_broken = false) : broken_(with_broken ? 3 : SIZE_MAX) {
    for (size_t i = 0; i < n; ++i)
      ids_.push_back("picture-" + std::to_string(i)), labels_.push_back(int(i % 2));
    class_names_ = {"even", "odd"};
    finish(DatasetKind::flat, "pictures");
  }
  std::vector<uint8_t> read(size_t) const override { return {}; }
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    if (i == broken_) fail("the file is broken", ids_[i]);
    Image image{40, 30, std::vector<uint8_t>(40 * 30 * 3)};
    const RandomStream random(i, "pictures");
    for (size_t p = 0; p < image.rgb.size(); ++p)
      image.rgb[p] = uint8_t(random.bits(p / 37) % 200 + p % 50);
    return image;
  }

 private:
  size_t broken_;
};

inline Architecture tiny() {
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 2, a.width = a.embedding_width = 48, a.heads = 3, a.head_dim = 16, a.mlp_hidden = 96;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = 8, a.input_h = a.input_w = 24,
  a.stored_grid_h = a.stored_grid_w = 3;
  a.preprocess.transform.resize_size = 27;
  return a;
}

inline Backbone tiny_backbone(Pool& pool) {
  return Backbone::assemble(tiny(), RandomTensors(1), {.precision = Precision::f32}, pool);
}

inline std::vector<size_t> range(size_t n) {
  std::vector<size_t> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = i;
  return all;
}

inline bool same(const Matrix<float>& x, const Matrix<float>& y) {
  return x.rows() == y.rows() && x.cols() == y.cols() &&
         std::equal(x.data(), x.data() + x.rows() * x.cols(), y.data());
}

inline ExtractorOptions all_objectives() {
  ExtractorOptions o;
  o.objectives = {"kl", "dino:width=32,local_crops=2", "simclr:width=16,negatives=3",
                  "deepcluster:prototypes=4"};
  o.projection_rows = 20;
  return o;
}

}  // namespace fungi::test
