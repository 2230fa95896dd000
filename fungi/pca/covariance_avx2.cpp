// SPDX-License-Identifier: Apache-2.0
// The products of columns for one instruction set; the flags are set in cmake/isa.cmake.
#include "fungi/pca/covariance_kernel.h"

namespace fungi {
namespace {

constexpr size_t kLanes = 8, kRows = 4;

#include "fungi/pca/covariance_body.h"

}  // namespace

const CovarianceKernel kCovarianceAvx2 = table;

}  // namespace fungi
