// SPDX-License-Identifier: Apache-2.0
// exp, the normal distribution and the logistic function on registers, by polynomials fitted for
// these files (weighted minimax). exp is within 2 ulps over the whole range, subnormals included.
#pragma once

#include "fungi/kernel/vector.h"

namespace fungi::kernel {
namespace {

// 2^n · (1 + r + r² q(r)) with x = n ln 2 + r, |r| <= ln 2 / 2. Below 2^-126 it is zero (subnormal
// numbers are slow), above e^88.37 it stays there; NaN passes through.
FUNGI_INLINE Floats exp(Floats x) {
  constexpr float kLowest = -87.33654f, kHighest = 88.37626f;
  const Floats c = min(all(kHighest), max(all(kLowest), x));
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const Floats n = Floats(_mm512_maskz_roundscale_ps(0xffff, __m512(c * 1.44269504f), 8));
#else
  constexpr float kShift = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer
  const Floats shifted = fma(c, all(1.44269504f), all(kShift));
  const Floats n = shifted - kShift;
#endif
  Floats r = fma(n, all(-0.693359375f), c);  // ten bits: n times it is exact
  r = fma(n, all(2.12194440e-4f), r);
  Floats q = all(0x1.6a2432p-10f);
  q = fma(q, r, all(0x1.1239e4p-7f));
  q = fma(q, r, all(0x1.5558f2p-5f));
  q = fma(q, r, all(0x1.555492p-3f));
  q = fma(q, r, all(0x1.fffffcp-2f));
  const Floats y = fma(q * r, r, r) + 1.0f;
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const __mmask16 normal = _mm512_cmp_ps_mask(__m512(x), __m512(all(kLowest)), _CMP_NLT_UQ);
  return Floats(_mm512_maskz_scalef_ps(normal, __m512(y), __m512(n)));
#else
  const Floats power = Floats((Words(shifted) << 23) + 0x3f800000u);  // 2^n
  return x < kLowest ? Floats{} : y * power;
#endif
}

// 2^x to 3e-6, for weights that will be rounded to bf16: the exponent is split off exactly. Zero
// below 2^-126; NaN passes through. x is not above 100.
FUNGI_INLINE Floats quick_exp2(Floats x) {
  const Floats c = max(all(-126.0f), x);
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const Floats n = Floats(_mm512_maskz_roundscale_ps(0xffff, __m512(c), 8));
#else
  const Floats shifted = c + 12582912.0f, n = shifted - 12582912.0f;  // as in exp
#endif
  const Floats r = c - n;
  Floats p = all(0.00957053155f);
  p = fma(p, r, all(0.0559186637f));
  p = fma(p, r, all(0.240247354f));
  p = fma(p, r, all(0.693121672f));
  p = fma(p, r, all(0.999999285f));
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const __mmask16 normal = _mm512_cmp_ps_mask(__m512(x), __m512(all(-126.0f)), _CMP_NLT_UQ);
  return Floats(_mm512_maskz_scalef_ps(normal, __m512(p), __m512(n)));
#else
  return x < -126.0f ? Floats{} : p * Floats((Words(shifted) << 23) + 0x3f800000u);
#endif
}

// The normal distribution's tail beyond |x|, given e^(-x²/2): that times a polynomial in 1 / (1 +
// |x|/4). Within 2e-7 at 0, 2e-8 from 1 on.
FUNGI_INLINE Floats normal_tail(Floats x, Floats bell) {
  const Floats w = inverse(fma(min(max(x, -x), all(20.0f)), all(0.25f), all(1.0f)));
  Floats p = all(-0.0937952132f);
  p = fma(p, w, all(0.351277507f));
  p = fma(p, w, all(-0.284307074f));
  p = fma(p, w, all(0.297192655f));
  p = fma(p, w, all(0.0167925485f));
  p = fma(p, w, all(0.114215758f));
  p = fma(p, w, all(0.0986238082f));
  return p * w * bell;
}

// erf(x) to 4e-7 as a quotient of polynomials: no exponential, for results that will be rounded to
// bf16.
FUNGI_INLINE Floats quick_erf(Floats x) {
  const Floats c = min(all(3.91628051f), max(all(-3.91628051f), x));  // there it is 1.0f exactly
  const Floats t = c * c;
  Floats p = all(2.03473934e-06f);
  p = fma(p, t, all(2.87480051e-04f));
  p = fma(p, t, all(3.86833645e-03f));
  p = fma(p, t, all(5.30605080e-02f));
  p = fma(p, t, all(1.92764209e-01f));
  p = fma(p, t, all(1.12837902e+00f));
  Floats q = all(3.80707221e-05f);
  q = fma(q, t, all(1.18811825e-03f));
  q = fma(q, t, all(1.51723127e-02f));
  q = fma(q, t, all(1.15084688e-01f));
  q = fma(q, t, all(5.04164498e-01f));
  q = fma(q, t, all(1.0f));
  return c * p * inverse(q);
}

// σ(x) = 1 / (1 + e^-x); rest receives 1 - σ(x) without cancellation.
FUNGI_INLINE Floats logistic(Floats x, Floats& rest) {
  const Floats e = exp(min(all(87.0f), -x));
  const Floats s = inverse(1.0f + e);
  rest = e * s;
  return s;
}
FUNGI_INLINE Floats logistic(Floats x) { return inverse(1.0f + exp(min(all(87.0f), -x))); }

}  // namespace
}  // namespace fungi::kernel
