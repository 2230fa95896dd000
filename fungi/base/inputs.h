// SPDX-License-Identifier: Apache-2.0
// What a backbone is fed: a batch of views, all of one sort, each with its own number of tokens
// where the sort allows it. View makers write them into an InputBuffer; whoever has them elsewhere
// says where in Inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

// Views in memory of the caller's, of exactly one sort.
struct Inputs {
  // A picture each, [count, channels·height·width], normalised; or filter banks [count, time·bins].
  View<const float> pixels;
  View<const uint8_t> masked;  // [count, patches]: 1 = replaced by the mask token; or empty
  // Of a filter bank, how many leading frames hold sound and not padding, which some models leave
  // out of their mean. One number per view, 0 = all of its frames; or empty.
  std::span<const uint32_t> frames;
  // Of a picture that is smaller than the model's input, and square, its side: its row begins with
  // its channels, and the rest is not looked at. One number per view, 0 = it is as large; or empty.
  std::span<const uint32_t> sides;

  struct Text {
    std::span<const int32_t> ids;
    std::span<const uint8_t> mask;  // 0 = padding, not attended to; empty = all ones
  };
  std::span<const Text> texts;

  // Rows of the model's width that stand where its own patches or words would, [tokens, width]
  // each; the model adds its positions, its prefix tokens and what else it does behind them.
  std::span<const View<const float>> embedded;

  static Inputs images(View<const float> pixels) {
    Inputs i;
    i.pixels = pixels;
    return i;
  }
  static Inputs text(std::span<const Text> texts) {
    Inputs i;
    i.texts = texts;
    return i;
  }
  static Inputs tokens(std::span<const View<const float>> embedded) {
    Inputs i;
    i.embedded = embedded;
    return i;
  }
  size_t count() const {
    return pixels.data ? pixels.rows : texts.empty() ? embedded.size() : texts.size();
  }
};

// Views that are written one after the other, into memory that grows and stays.
class InputBuffer {
 public:
  void clear();  // the memory stays
  size_t count() const { return views_.size(); }
  size_t ids() const { return ids_.size(); }  // of all texts

  // Room for the next view, until the one after it is added. All of a batch are of one sort, and
  // pictures (filter banks) have room for one size: an Error otherwise. frames, side: see Inputs.
  std::span<float> add_pixels(size_t numbers, uint32_t frames = 0, uint32_t side = 0);
  std::span<int32_t> add_ids(size_t tokens);
  View<float> add_embedded(size_t tokens, size_t width);

  // Of all views, until clear() or the next add.
  Inputs inputs();

 private:
  enum class Sort { pixels, ids, embedded };
  struct Place {
    size_t first, count, width;  // numbers or ids; width of a row
  };
  Place& add(Sort sort, size_t count, size_t width);
  void reserve_numbers(size_t count);

  Sort sort_ = Sort::pixels;  // of the views that are there
  std::vector<Place> views_;
  Matrix<float> numbers_;  // one row: aligned as kernels like it
  std::vector<int32_t> ids_;
  std::vector<uint32_t> frames_, sides_;
  std::vector<Inputs::Text> texts_;  // what inputs() points to, as the next
  std::vector<View<const float>> embedded_;
};

}  // namespace fungi
