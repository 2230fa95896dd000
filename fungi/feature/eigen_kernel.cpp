// SPDX-License-Identifier: Apache-2.0
// Chooses the table of the eigen-solver.
#include "fungi/feature/eigen_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi {

extern const EigenKernel kEigenGeneric;
#if defined(__x86_64__)
extern const EigenKernel kEigenAvx2, kEigenAvx512;
#endif

const EigenKernel& eigen_kernel(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512 || isa == Isa::amx) return kEigenAvx512;
  if (isa == Isa::avx2) return kEigenAvx2;
#endif
  (void)isa;
  return kEigenGeneric;
}

}  // namespace fungi
