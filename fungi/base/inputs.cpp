// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/inputs.h"

#include <string>

namespace fungi {

void InputBuffer::clear() {
  views_.clear();
  ids_.clear();
  frames_.clear();
  sides_.clear();
}

InputBuffer::Place& InputBuffer::add(Sort sort, size_t count, size_t width) {
  if (!views_.empty() && (sort != sort_ || (sort == Sort::pixels && count != views_[0].count)))
    fail("the views of a batch are not of one sort, or its pictures not of one size", "InputBuffer",
         "a view maker writes views of the one sort that its model reads");
  sort_ = sort;
  const size_t first = views_.empty() ? 0 : views_.back().first + views_.back().count;
  return views_.emplace_back(Place{first, count, width});
}

void InputBuffer::reserve_numbers(size_t count) {
  if (count <= numbers_.cols()) return;
  Matrix<float> larger(1, std::max(count, 2 * numbers_.cols()));
  if (!numbers_.empty()) std::copy_n(numbers_.data(), numbers_.cols(), larger.data());
  numbers_ = std::move(larger);
}

std::span<float> InputBuffer::add_pixels(size_t numbers, uint32_t frames, uint32_t side) {
  const Place& place = add(Sort::pixels, numbers, numbers);
  reserve_numbers(place.first + numbers);
  frames_.push_back(frames);
  sides_.push_back(side);
  return {numbers_.data() + place.first, numbers};
}

std::span<int32_t> InputBuffer::add_ids(size_t tokens) {
  const Place& place = add(Sort::ids, tokens, 1);
  ids_.resize(place.first + tokens);
  return {ids_.data() + place.first, tokens};
}

View<float> InputBuffer::add_embedded(size_t tokens, size_t width) {
  const Place& place = add(Sort::embedded, tokens * width, width);
  reserve_numbers(place.first + tokens * width);
  return {numbers_.data() + place.first, tokens, width};
}

Inputs InputBuffer::inputs() {
  if (views_.empty()) return {};
  if (sort_ == Sort::pixels) {
    Inputs all = Inputs::images({numbers_.data(), views_.size(), views_[0].count});
    all.frames = frames_;
    all.sides = sides_;
    return all;
  }
  texts_.clear(), embedded_.clear();
  for (const Place& p : views_)
    if (sort_ == Sort::ids)
      texts_.push_back({{ids_.data() + p.first, p.count}, {}});
    else
      embedded_.emplace_back(numbers_.data() + p.first, p.count / p.width, p.width);
  return sort_ == Sort::ids ? Inputs::text(texts_) : Inputs::tokens(embedded_);
}

}  // namespace fungi
