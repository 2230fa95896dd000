// SPDX-License-Identifier: Apache-2.0
// The scan table for AVX2. vpmaddubsw makes 32 products of bytes per instruction, four times the
// f32 multiply-add; two steps are added in 16 bits before they are widened, which encode()'s limits
// make exact.
#include <immintrin.h>

#include "fungi/search/scan_kernel.h"

namespace fungi::search {
namespace {

#include "fungi/search/scan_body.h"

inline __m256i broadcast(const uint8_t* four) noexcept {
  int32_t value;
  __builtin_memcpy(&value, four, 4);
  return _mm256_set1_epi32(value);
}

void scan_bytes(size_t d_padded, size_t rows, const uint8_t* queries, const int8_t* panels,
                const RowTerms& terms, const QueryTerms* query_terms, Hit* hits, size_t capacity,
                uint32_t* counts) noexcept {
  const size_t steps = d_padded / 4;
  const __m256i ones = _mm256_set1_epi16(1);
  for (size_t i = 0; i < kQueryGroup; ++i) counts[i] = 0;
  for (size_t j = 0; j < rows; j += kPanelRows) {
    const __m256i* panel = reinterpret_cast<const __m256i*>(panels + j * d_padded);
    const uint8_t* codes = queries;
    __m256i sum[kQueryGroup];
    for (size_t i = 0; i < kQueryGroup; ++i) sum[i] = _mm256_setzero_si256();
    for (size_t t = 0; t < steps; t += 2, codes += 2 * 4 * kQueryGroup) {
      const __m256i first = _mm256_load_si256(panel + t), second = _mm256_load_si256(panel + t + 1);
#pragma GCC unroll 6
      for (size_t i = 0; i < kQueryGroup; ++i) {
        const __m256i a = _mm256_maddubs_epi16(broadcast(codes + 4 * i), first);
        const __m256i b = _mm256_maddubs_epi16(broadcast(codes + 4 * (kQueryGroup + i)), second);
        sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(_mm256_add_epi16(a, b), ones));
      }
    }
    const __m256i offset = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(terms.offset + j));
    const __m256 bias = _mm256_loadu_ps(terms.bias + j), scale = _mm256_loadu_ps(terms.scale + j);
    const __m256 residual = _mm256_loadu_ps(terms.residual + j),
                 norm = _mm256_loadu_ps(terms.norm + j);
    for (size_t i = 0; i < kQueryGroup; ++i) {
      const QueryTerms& q = query_terms[i];
      const __m256 dot = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_sub_epi32(sum[i], offset)));
      const __m256 slack = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(q.norm), residual),
                                         _mm256_mul_ps(_mm256_set1_ps(q.residual), norm));
      const __m256 lower =
          _mm256_sub_ps(_mm256_sub_ps(bias, _mm256_mul_ps(_mm256_set1_ps(q.scale), dot)), slack);
      unsigned mask =
          unsigned(_mm256_movemask_ps(_mm256_cmp_ps(lower, _mm256_set1_ps(q.limit), _CMP_NGT_UQ)));
      if (mask == 0) continue;
      alignas(32) float values[kPanelRows];
      _mm256_store_ps(values, lower);
      for (; mask != 0; mask &= mask - 1) {
        const unsigned l = unsigned(__builtin_ctz(mask));
        if (j + l < rows) hits[i * capacity + counts[i]++] = {uint32_t(j + l), values[l]};
      }
    }
  }
}

}  // namespace

extern const ScanKernel kScanAvx2;
const ScanKernel kScanAvx2 = {"avx2",        squared_distance, inner_product, rough_distance,
                              rough_product, encode,           scan_bytes,    filter};

}  // namespace fungi::search
