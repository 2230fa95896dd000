// SPDX-License-Identifier: Apache-2.0
// Chooses the table of the products of columns.
#include "fungi/feature/covariance_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi {

extern const CovarianceKernel kCovarianceGeneric;
#if defined(__x86_64__)
extern const CovarianceKernel kCovarianceAvx2, kCovarianceAvx512;
#endif

const CovarianceKernel& covariance_kernel(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512 || isa == Isa::amx) return kCovarianceAvx512;
  if (isa == Isa::avx2) return kCovarianceAvx2;
#endif
  (void)isa;
  return kCovarianceGeneric;
}

}  // namespace fungi
