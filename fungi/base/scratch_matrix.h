// SPDX-License-Identifier: Apache-2.0
// A matrix that may be larger than memory: beyond a limit its numbers live in a mapped scratch file
// that has no name any more, so the system can write parts of it out and nothing is left behind.
#pragma once

#include <memory>
#include <utility>

#include "fungi/base/matrix.h"

namespace fungi {

// A quarter of the memory that the machine, or the container, has.
size_t default_memory_limit();

class ScratchMatrix {
 public:
  ScratchMatrix() = default;
  // Zero-filled. More than `memory_limit` bytes go to a file in the folder for temporary files
  // (TMPDIR). Throws Error when that has no room or is no folder.
  ScratchMatrix(size_t rows, size_t cols, size_t memory_limit);
  ScratchMatrix(ScratchMatrix&& other) noexcept { *this = std::move(other); }
  ScratchMatrix& operator=(ScratchMatrix&& other) noexcept {  // a moved one is empty
    memory_ = std::move(other.memory_);
    mapping_ = std::move(other.mapping_);
    view_ = std::exchange(other.view_, {});
    return *this;
  }

  size_t rows() const { return view_.rows; }
  size_t cols() const { return view_.cols; }
  bool on_disk() const { return mapping_ != nullptr; }
  View<float> view() { return view_; }
  View<const float> view() const { return view_; }
  operator View<const float>() const { return view_; }

 private:
  struct Mapping;
  Matrix<float> memory_;
  std::shared_ptr<Mapping> mapping_;
  View<float> view_;
};

}  // namespace fungi
