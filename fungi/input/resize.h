// SPDX-License-Identifier: Apache-2.0
// Two dialects of separable, antialiased resizing (SPEC 3.2): Pillow's on 8-bit RGB, byte for byte,
// and torch's on float planes, which neither rounds nor clamps. Weights depend on (from, to,
// filter) only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fungi/base/preprocess.h"
#include "fungi/input/image.h"

namespace fungi {

// One axis, `from` -> `to` samples: output i = sum over j < taps of weight[i*taps + j] *
// input[first[i] + j]. Windows shorter than `taps` are filled with zero weights; first[i] + taps <=
// from always holds.
template <class T>
struct AxisWeights {
  size_t from = 0, to = 0, taps = 0;
  std::vector<uint32_t> first;
  std::vector<T> weight;
};

// Weights in float32 arithmetic throughout, as torch computes them for float tensors.
AxisWeights<float> float_weights(size_t from, size_t to, Filter filter);
// Weights in float64, rounded to 22-bit fixed point, as Pillow computes them for 8-bit images.
AxisWeights<int32_t> fixed_weights(size_t from, size_t to, Filter filter);

// Borrowed RGB pixels; `stride` bytes lie between the starts of two rows, so a crop needs no copy.
struct Pixels {
  const uint8_t* rgb = nullptr;
  size_t width = 0, height = 0, stride = 0;

  Pixels() = default;
  Pixels(const uint8_t* data, size_t w, size_t h, size_t row)
      : rgb(data), width(w), height(h), stride(row) {}
  Pixels(const Image& image)  // NOLINT: an image is pixels
      : Pixels(image.rgb.data(), image.width, image.height, 3 * image.width) {}
  // The part of `width` x `height` pixels whose upper left corner is (left, top); must lie inside.
  Pixels crop(size_t left, size_t top, size_t w, size_t h) const;
};

// Throws Error for a picture that is more than 4096 times as long as it is wide: weights and rows
// of the longer side grow with it, and a thread 1 pixel wide and millions long would take gigabytes
// and minutes to become nothing that anybody can see.
void check_proportion(size_t width, size_t height);

// A rectangle of pixels.
struct Window {
  size_t left = 0, top = 0, width = 0, height = 0;
};

// Pillow's Image.resize((width, height), filter) of an RGB image (kernel A): horizontal pass, then
// vertical, both to 8 bits; a pass whose size does not change is left out. Nothing outside `in` is
// seen. Throws as check_proportion. Keeps its scratch memory and the last weights, so hold one per
// thread.
//
// DEVIATION: Pillow 13 runs the vertical pass first for some size pairs, mostly where the height
// shrinks and the width does not, and then differs by a level here and there. This is the order of
// the versions before it (9.4 and 12.3 give these very bytes), which made the published numbers.
class PillowResizer {
 public:
  void resize(const Pixels& in, size_t width, size_t height, Filter filter, Image& out);
  // Only the pixels of the result inside `window`, which must lie within it; `out` has the window's
  // size.
  void resize(const Pixels& in, size_t width, size_t height, Filter filter, const Window& window,
              Image& out);

 private:
  struct Axis {
    AxisWeights<int32_t> weights;
    Filter filter = Filter::bilinear;
  };
  static const AxisWeights<int32_t>& weights(Axis& axis, size_t from, size_t to, Filter filter);

  Axis horizontal_, vertical_;
  std::vector<int32_t> pair_, sums_;     // two input rows spread to lanes; weighted sums
  std::vector<uint8_t> bytes_, middle_;  // two output rows in lanes; the picture between the passes
};

// out[i] = sum over j < taps of weight[j] * in[j*stride + i], added in the order of j, for i <
// count: the inner loop of every float resize, torch's interpolate(antialias=True) (kernel B), on
// the plane and on the plane turned. Same bits on every machine.
void blend_rows(const float* in, size_t stride, const float* weight, size_t taps, size_t count,
                float* out);

}  // namespace fungi
