// SPDX-License-Identifier: Apache-2.0
// The inner loops as a table of functions, one table per instruction set and precision; everything
// above this line of the house calls only these. Kernels are noexcept, check nothing, allocate
// nothing and keep no state. The table itself, and the promises it makes, stand in table.h.
#pragma once

#include <span>
#include <string_view>

#include "fungi/base/cpu.h"
#include "fungi/base/matrix.h"
#include "fungi/kernel/table.h"

namespace fungi {

const char* to_string(Precision precision);
Precision parse_precision(std::string_view name, std::string_view place = "precision");  // Error

}  // namespace fungi

namespace fungi::kernel {

// A constant right-hand side in the layout of one table: y = x · Wᵀ with W [n, k]. Built by pack(),
// below.
struct PackedMatrix {
  Buffer data;
  size_t n = 0, k = 0;
};

// The table for an instruction set this machine supports. bf16 exists everywhere: on tiles or as
// products of pairs where the processor has them, otherwise with bf16 storage widened to f32 in the
// registers (half the memory, the same rounding of the operands). Throws Error when this machine
// cannot run `isa`.
const Kernel& kernel_for(Isa isa, Precision precision);
const Kernel& f32_kernel();  // the f32 table of best_isa()

// What is fastest on this machine: bf16 where its products are faster than those of f32.
Precision fastest_precision(Isa isa);

// Packs W for this table; see Kernel::pack.
PackedMatrix pack(const Kernel& kernel, View<const float> w, bool transposed = false);

// The same for a table of int8 and W whose product with x is best taken of x / smoothing, a positive
// number per column.
PackedMatrix pack_smoothed(const Kernel& kernel, View<const float> w,
                           std::span<const float> smoothing);

// y = x · Wᵀ (+ bias) for W packed by an f32 table and any strides. scratch grows where it is too
// small.
void multiply(const Kernel& kernel, View<const float> x, const PackedMatrix& w, const float* bias,
              View<float> y, Buffer& scratch);

// The machine's own ceiling for this table's products: GFLOP/s of register-resident multiply-adds
// on random data, summed over `threads` threads running at once for about `seconds`.
double measure_peak_gflops(const Kernel& kernel, unsigned threads, double seconds = 0.5);

}  // namespace fungi::kernel
