// SPDX-License-Identifier: Apache-2.0
// Chooses the table of the products of columns.
#include "fungi/pca/covariance_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi {

const CovarianceKernel& covariance_kernel(Isa isa) {
  if (isa == Isa::avx512 || isa == Isa::amx) return kCovarianceAvx512;
  if (isa == Isa::avx2) return kCovarianceAvx2;
  return kCovarianceGeneric;
}

}  // namespace fungi
