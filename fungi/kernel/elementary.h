// SPDX-License-Identifier: Apache-2.0
// exp, the normal distribution and the logistic function on registers, by polynomials fitted for
// these files (weighted minimax). exp is within 2 ulps wherever it is a normal number.
// Internal to this room.
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
// below 2^-126; NaN passes through. x is not above 126.
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

// x·Φ(x) for a result that will be rounded to bf16: Φ = (q + x p) / 2q with polynomials p, q in x²,
// no exponential. Within 1e-4 of itself from x = -2 on, within 1e-5 absolutely.
FUNGI_INLINE Floats gelu_for_bf16(Floats x) {
  constexpr float kEnd = 5.4109976f;  // where q = x p: Φ is 0 or 1, and stays so beyond
  const Floats m = max(all(-kEnd), x), c = min(all(kEnd), m), t = c * c;
  Floats p = all(-2.54875397e-07f);
  p = fma(p, t, all(1.06861968e-04f));
  p = fma(p, t, all(8.61690925e-03f));
  p = fma(p, t, all(5.54836095e-02f));
  p = fma(p, t, all(7.97977011e-01f));
  Floats q = all(1.48496703e-03f);
  q = fma(q, t, all(2.49420238e-02f));
  q = fma(q, t, all(2.36506437e-01f));
  q = fma(q, t, all(1.0f));
  return fma(c, p, q) * rough_inverse(q) * (0.5f * m);
}

// Each number out of a table of sixteen, chosen by the last four bits.
FUNGI_INLINE Floats look_up(const float (&table)[16], Words index) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_maskz_permutexvar_ps(0xffff, __m512i(index), _mm512_load_ps(table)));
#elif defined(__AVX2__) && FUNGI_VECTOR_BYTES == 32
  const __m256i at = __m256i(index);
  return Floats(_mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_load_ps(table), at),
                                 _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), at),
                                 __m256(index << 28)));
#else
  Floats found;
  for (size_t l = 0; l < kLanes; ++l) found[l] = table[index[l] & 15];
  return found;
#endif
}

// The same for a result that will be rounded to 8 bits, within 3e-4: max(x, 0) - t (1 - Φ(t)) with
// t = |x|, a quadratic around each quarter; beyond the end it is 0.
FUNGI_INLINE Floats gelu_for_bytes(Floats x) {
  constexpr float kEnd = 3.85f, kQuarters = 3145728.0f;  // 1.5 · 2²¹: the last bit counts quarters
  alignas(64) static constexpr float kConstant[16] = {
      0.0f,         0.000611852214f, 0.0104582096f, 0.0465374961f, 0.11933431f,  0.220977619f,
      0.325894743f, 0.4030689f,      0.431081414f,  0.406600565f,  0.34279114f,  0.260790348f,
      0.180306882f, 0.113897108f,    0.0660078079f, 0.0352118164f};
  alignas(64) static constexpr float kLinear[16] = {
      0.499894768f,  0.492324382f,   0.441451132f,   0.326867223f,  0.160541773f,  -0.0206891336f,
      -0.174107119f, -0.269883245f,  -0.300350577f,  -0.277636826f, -0.224010512f, -0.161504865f,
      -0.105429307f, -0.0628344715f, -0.0343823992f, -0.0173429064f};
  alignas(64) static constexpr float kSquare[16] = {
      -0.397193193f, -0.373912483f,  -0.307660043f,  -0.216386482f, -0.121220835f, -0.0403545462f,
      0.0157674458f, 0.0454956144f,  0.0537800044f,  0.0485110804f, 0.0372414887f, 0.0253279209f,
      0.0155589702f, 0.00872807205f, 0.00450161519f, 0.00214440143f};
  const Floats t = min(all(kEnd), Floats(Words(x) & 0x7fffffffu));
  const Words quarter = Words(t + kQuarters);
  const Floats slope = fma(look_up(kSquare, quarter), t, look_up(kLinear, quarter));
  return max(Floats{}, x) - fma(slope, t, look_up(kConstant, quarter));
}

// σ(x) = 1 / (1 + e^-x); rest receives 1 - σ(x) without cancellation.
FUNGI_INLINE Floats logistic(Floats x, Floats& rest) {
  const Floats e = exp(min(all(87.0f), -x));
  const Floats s = inverse(1.0f + e);
  rest = e * s;
  return s;
}
template <bool Quick = false>
FUNGI_INLINE Floats logistic(Floats x) {
  if constexpr (Quick)  // to four digits
    return rough_inverse(1.0f + quick_exp2(min(all(126.0f), x * -1.44269504f)));
  return inverse(1.0f + exp(min(all(87.0f), -x)));
}

}  // namespace
}  // namespace fungi::kernel
