// SPDX-License-Identifier: Apache-2.0
// The scan table for AVX-512 with VNNI: vpdpbusd makes 64 products of bytes and adds them in 32
// bits, so that codes use their whole range. Two panels against twelve queries: 24 sums, enough to
// hide the latency of an addition, and half a load for each product.
#include <immintrin.h>

#include "fungi/search/scan_kernel.h"

namespace fungi::search {
namespace {

constexpr size_t kQueryGroup = 12;
constexpr bool kNarrowSums = false;

#include "fungi/search/scan_body.h"

inline __m512i broadcast(const uint8_t* four) noexcept {
  int32_t value;
  __builtin_memcpy(&value, four, 4);
  return _mm512_set1_epi32(value);
}

// sum += the products of sixteen times four bytes. Written out: GCC otherwise copies the sums from
// register to register.
inline void multiply_add(__m512i& sum, __m512i unsigned_bytes, __m512i signed_bytes) noexcept {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// What the bounds of sixteen rows are made of.
struct PanelTerms {
  PanelTerms(size_t first, const RowTerms& t) noexcept
      : bias(_mm512_loadu_ps(t.bias + first)),
        scale(_mm512_loadu_ps(t.scale + first)),
        residual(_mm512_loadu_ps(t.residual + first)),
        norm(_mm512_loadu_ps(t.norm + first)) {}
  __m512 bias, scale, residual, norm;
};

// The dot products of sixteen rows with one query become bounds; what cannot be excluded becomes
// hits.
inline uint32_t decide(size_t first, __mmask16 rows, __m512i dots, const PanelTerms& t,
                       const QueryTerms& q, Hit* hits, uint32_t count) noexcept {
  const __m512 dot = _mm512_mul_ps(t.scale, _mm512_maskz_cvtepi32_ps(0xffff, dots));
  const __m512 slack = _mm512_fmadd_ps(_mm512_set1_ps(q.residual), t.norm,
                                       _mm512_mul_ps(_mm512_set1_ps(q.norm), t.residual));
  const __m512 lower = _mm512_sub_ps(_mm512_fnmadd_ps(_mm512_set1_ps(q.scale), dot, t.bias), slack);
  unsigned mask = _mm512_mask_cmp_ps_mask(rows, lower, _mm512_set1_ps(q.limit), _CMP_NGT_UQ);
  if (__builtin_expect(mask == 0, 1)) return count;
  alignas(64) float values[16];
  _mm512_store_ps(values, lower);
  for (; mask != 0; mask &= mask - 1) {
    const unsigned lane = unsigned(__builtin_ctz(mask));
    hits[count++] = {uint32_t(first + lane), values[lane]};
  }
  return count;
}

// sums [P][kQueryGroup][16] = start + products of P panels with the group. A function of its own,
// which ends with stores: GCC otherwise keeps the sums in memory all along.
template <size_t P>
[[gnu::noinline]] void multiply_panels(size_t d_padded, const uint8_t* queries,
                                       const int8_t* panels, const int32_t* offset,
                                       __m512i* sums) noexcept {
  __m512i sum[P][kQueryGroup];
#pragma GCC unroll 2
  for (size_t p = 0; p < P; ++p) {
    // Query codes are 128 too large: the sums start where that is undone.
    const __m512i start =
        _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(offset + p * kPanelRows));
#pragma GCC unroll 12
    for (size_t i = 0; i < kQueryGroup; ++i) sum[p][i] = start;
  }
  for (size_t t = 0; t < d_padded; t += 4, panels += 4 * kPanelRows, queries += 4 * kQueryGroup) {
    __m512i row[P];
#pragma GCC unroll 2
    for (size_t p = 0; p < P; ++p) row[p] = _mm512_loadu_si512(panels + p * kPanelRows * d_padded);
#pragma GCC unroll 12
    for (size_t i = 0; i < kQueryGroup; ++i) {
      const __m512i query = broadcast(queries + 4 * i);
#pragma GCC unroll 2
      for (size_t p = 0; p < P; ++p) multiply_add(sum[p][i], query, row[p]);
    }
  }
#pragma GCC unroll 2
  for (size_t p = 0; p < P; ++p)
#pragma GCC unroll 12
    for (size_t i = 0; i < kQueryGroup; ++i) sums[p * kQueryGroup + i] = sum[p][i];
}

void scan_bytes(size_t d_padded, size_t rows, const uint8_t* queries, const int8_t* panels,
                const RowTerms& terms, const QueryTerms* query_terms, Hit* hits, size_t capacity,
                uint32_t* counts) noexcept {
  static_assert(kPanelRows == 16 && kCodeMultiple % 4 == 0 && kQueryGroups % kQueryGroup == 0);
  for (size_t i = 0; i < kQueryGroup; ++i) counts[i] = 0;
  __m512i sums[2][kQueryGroup];
  for (size_t j = 0; j < rows; j += 2 * kPanelRows) {
    const size_t panels_here = rows - j > kPanelRows ? 2 : 1;
    if (panels_here == 2)
      multiply_panels<2>(d_padded, queries, panels + j * d_padded, terms.offset + j, sums[0]);
    else
      multiply_panels<1>(d_padded, queries, panels + j * d_padded, terms.offset + j, sums[0]);
    for (size_t p = 0; p < panels_here; ++p) {
      const size_t first = j + p * kPanelRows, left = rows - first;
      const __mmask16 present = left >= kPanelRows ? 0xffff : __mmask16((1u << left) - 1);
      const PanelTerms panel(first, terms);
      for (size_t i = 0; i < kQueryGroup; ++i)
        counts[i] = decide(first, present, sums[p][i], panel, query_terms[i], hits + i * capacity,
                           counts[i]);
    }
  }
}

}  // namespace

const ScanKernel kScanVnni = {"vnni",         kQueryGroup,   squared_distance, inner_product,
                              rough_distance, rough_product, accumulate,       encode,
                              scan_bytes,     filter};

}  // namespace fungi::search
