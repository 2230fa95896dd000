// SPDX-License-Identifier: Apache-2.0
// The scan table for any machine: plain loops.
#include "fungi/search/scan_kernel.h"

namespace fungi::search {
namespace {

constexpr size_t kQueryGroup = 4;
constexpr bool kNarrowSums = false;

#include "fungi/search/scan_body.h"

void scan_bytes(size_t d_padded, size_t rows, const uint8_t* queries, const int8_t* panels,
                const RowTerms& terms, const QueryTerms* query_terms, Hit* hits, size_t capacity,
                uint32_t* counts) noexcept {
  const size_t steps = d_padded / 4;
  for (size_t i = 0; i < kQueryGroup; ++i) {
    counts[i] = 0;
    for (size_t j = 0; j < rows; ++j) {
      const int8_t* p = panels + (j / kPanelRows * steps * kPanelRows + j % kPanelRows) * 4;
      const uint8_t* u = queries + i * 4;
      int32_t sum = 0;
      for (size_t t = 0; t < steps; ++t)
        for (size_t l = 0; l < 4; ++l)
          sum += int32_t(u[t * kQueryGroup * 4 + l]) * int32_t(p[t * kPanelRows * 4 + l]);
      const float lower = lower_bound(j, float(sum - terms.offset[j]), terms, query_terms[i]);
      if (!(lower > query_terms[i].limit)) hits[i * capacity + counts[i]++] = {uint32_t(j), lower};
    }
  }
}

}  // namespace

const ScanKernel kScanGeneric = {"generic",      kQueryGroup,   squared_distance, inner_product,
                                 rough_distance, rough_product, accumulate,       encode,
                                 scan_bytes,     filter};

}  // namespace fungi::search
