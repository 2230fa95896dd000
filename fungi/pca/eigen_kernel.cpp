// SPDX-License-Identifier: Apache-2.0
// Chooses the table of the eigen-solver.
#include "fungi/pca/eigen_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi {

const EigenKernel& eigen_kernel(Isa isa) {
  if (isa == Isa::avx512 || isa == Isa::amx) return kEigenAvx512;
  if (isa == Isa::avx2) return kEigenAvx2;
  return kEigenGeneric;
}

}  // namespace fungi
