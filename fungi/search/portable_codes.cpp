// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/portable_codes.h"

namespace fungi::search {
namespace {

constexpr bool kNarrowSums = true;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "fungi/search/scan_body.h"
#pragma GCC diagnostic pop

}  // namespace

CodeTerms encode_portably(bool query, size_t d_padded, const float* v, int8_t* codes) noexcept {
  return encode(query, d_padded, v, codes);
}

}  // namespace fungi::search
