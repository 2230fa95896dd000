// SPDX-License-Identifier: Apache-2.0
// The f64 loops of the eigen-solver for one instruction set; the flags are set in
// cmake/isa.cmake.
#include "fungi/pca/eigen_kernel.h"

namespace fungi {
namespace {

constexpr size_t kLanes = 8, kTileRows = 8;

#include "fungi/pca/eigen_body.h"

}  // namespace

const EigenKernel kEigenAvx512 = table;

}  // namespace fungi
