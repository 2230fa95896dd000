// SPDX-License-Identifier: Apache-2.0
// The only file that knows KISS FFT.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/input/fourier.h"

#ifdef FUNGI_HAVE_KISSFFT
#include <kissfft/kiss_fftr.h>
#endif

namespace fungi {

#ifdef FUNGI_HAVE_KISSFFT

struct RealFourier::State {
  kiss_fftr_cfg plan = nullptr;
  std::vector<std::complex<float>> out;
  ~State() { kiss_fftr_free(plan); }
};

RealFourier::RealFourier(size_t size) : state_(std::make_unique<State>()) {
  if (size < 2 || size % 2 || size > (size_t{1} << 20))
    fail(fmt::format("expected an even size of a transform, found {}", size), "filter bank");
  state_->plan = kiss_fftr_alloc(int(size), 0, nullptr, nullptr);
  if (!state_->plan) throw std::bad_alloc();
  state_->out.resize(size / 2 + 1);
}

const std::complex<float>* RealFourier::operator()(const float* numbers) {
  static_assert(sizeof(kiss_fft_cpx) == sizeof(std::complex<float>));
  kiss_fftr(state_->plan, numbers, reinterpret_cast<kiss_fft_cpx*>(state_->out.data()));
  return state_->out.data();
}

#else

struct RealFourier::State {};

RealFourier::RealFourier(size_t) {
  fail("this program was built without KISS FFT, which sounds need", "filter bank",
       "install libkissfft-dev and build it again with -DFUNGI_KISSFFT=ON");
}

const std::complex<float>* RealFourier::operator()(const float*) { return nullptr; }

#endif

RealFourier::RealFourier(RealFourier&&) noexcept = default;
RealFourier::~RealFourier() = default;

}  // namespace fungi
