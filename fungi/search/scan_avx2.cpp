// SPDX-License-Identifier: Apache-2.0
// The scan table for AVX2. vpmaddubsw makes 32 products of bytes per instruction, four times the
// f32 multiply-add; two steps are added in 16 bits before they are widened, which encode()'s limits
// make exact.
#include <immintrin.h>

#include "fungi/search/scan_kernel.h"

namespace fungi::search {
namespace {

constexpr size_t kQueryGroup = 4;
constexpr bool kNarrowSums = true;

#include "fungi/search/scan_body.h"

inline __m256i broadcast(const uint8_t* four) noexcept {
  int32_t value;
  __builtin_memcpy(&value, four, 4);
  return _mm256_set1_epi32(value);
}

// Keeps a sum in its register: GCC otherwise copies it back and forth, at a third of the speed.
inline void pin(__m256i& sum) noexcept { asm("" : "+x"(sum)); }

// The sums of eight rows against one query become bounds; what cannot be excluded becomes hits.
inline uint32_t decide(size_t first, size_t rows, __m256i sum, const RowTerms& terms,
                       const QueryTerms& q, Hit* hits, uint32_t count) noexcept {
  const __m256i offset = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(terms.offset + first));
  const __m256 dot = _mm256_mul_ps(_mm256_loadu_ps(terms.scale + first),
                                   _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, offset)));
  const __m256 slack =
      _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(q.norm), _mm256_loadu_ps(terms.residual + first)),
                    _mm256_mul_ps(_mm256_set1_ps(q.residual), _mm256_loadu_ps(terms.norm + first)));
  const __m256 lower = _mm256_sub_ps(_mm256_sub_ps(_mm256_loadu_ps(terms.bias + first),
                                                   _mm256_mul_ps(_mm256_set1_ps(q.scale), dot)),
                                     slack);
  unsigned mask =
      unsigned(_mm256_movemask_ps(_mm256_cmp_ps(lower, _mm256_set1_ps(q.limit), _CMP_NGT_UQ)));
  if (mask == 0) return count;
  alignas(32) float values[8];
  _mm256_store_ps(values, lower);
  for (; mask != 0; mask &= mask - 1) {
    const size_t row = first + unsigned(__builtin_ctz(mask));
    if (row < rows) hits[count++] = {uint32_t(row), values[row - first]};
  }
  return count;
}

void scan_bytes(size_t d_padded, size_t rows, const uint8_t* queries, const int8_t* panels,
                const RowTerms& terms, const QueryTerms* query_terms, Hit* hits, size_t capacity,
                uint32_t* counts) noexcept {
  static_assert(kPanelRows == 16 && kCodeMultiple == 8);
  const __m256i ones = _mm256_set1_epi16(1);
  for (size_t i = 0; i < kQueryGroup; ++i) counts[i] = 0;
  for (size_t j = 0; j < rows; j += kPanelRows) {
    const __m256i* p = reinterpret_cast<const __m256i*>(panels + j * d_padded);
    const uint8_t* u = queries;
    __m256i low[kQueryGroup], high[kQueryGroup];  // rows j … j+7 and j+8 … j+15
    for (size_t i = 0; i < kQueryGroup; ++i) low[i] = high[i] = _mm256_setzero_si256();
    for (size_t t = 0; t < d_padded; t += 8, p += 4, u += 8 * kQueryGroup)
#pragma GCC unroll 4
      for (size_t i = 0; i < kQueryGroup; ++i) {
        const __m256i a = broadcast(u + 4 * i), b = broadcast(u + 4 * (kQueryGroup + i));
        const __m256i x = _mm256_add_epi16(_mm256_maddubs_epi16(a, _mm256_loadu_si256(p + 0)),
                                           _mm256_maddubs_epi16(b, _mm256_loadu_si256(p + 2)));
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(x, ones));
        pin(low[i]);
        const __m256i y = _mm256_add_epi16(_mm256_maddubs_epi16(a, _mm256_loadu_si256(p + 1)),
                                           _mm256_maddubs_epi16(b, _mm256_loadu_si256(p + 3)));
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(y, ones));
        pin(high[i]);
      }
    for (size_t i = 0; i < kQueryGroup; ++i) {
      Hit* mine = hits + i * capacity;
      counts[i] = decide(j, rows, low[i], terms, query_terms[i], mine, counts[i]);
      counts[i] = decide(j + 8, rows, high[i], terms, query_terms[i], mine, counts[i]);
    }
  }
}

}  // namespace

const ScanKernel kScanAvx2 = {"avx2",         kQueryGroup,   squared_distance, inner_product,
                              rough_distance, rough_product, accumulate,       encode,
                              scan_bytes,     filter};

}  // namespace fungi::search
