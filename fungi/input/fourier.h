// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of real numbers, by a library that a build may lack. Holds scratch memory: one
// per thread. Internal to this room.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

namespace fungi {

class RealFourier {
 public:
  explicit RealFourier(size_t size);  // even; Error where this build has none
  RealFourier(RealFourier&&) noexcept;
  ~RealFourier();
  // size numbers -> size / 2 + 1 coefficients, valid until the next call.
  const std::complex<float>* operator()(const float* numbers);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
