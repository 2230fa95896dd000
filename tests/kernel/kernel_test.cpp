// SPDX-License-Identifier: Apache-2.0
// The choice of tables and what every table says of itself.
#include "fungi/base/error.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

TEST(KernelFor, EveryTableIsComplete) {
  for (const Kernel* t : tables()) {
    SCOPED_TRACE(t->name);
    EXPECT_EQ(t->element_size, t->precision == Precision::f32 ? 4u : 2u);
    EXPECT_NE(std::string(t->name).find(to_string(t->precision)), std::string::npos);
    EXPECT_EQ(64 % (t->k_multiple * t->element_size), 0u);
    EXPECT_TRUE(t->packed_bytes && t->pack && t->gemm_scratch && t->attention_scratch && t->gemm &&
                t->attention && t->attention_backward && t->norm && t->norm_backward &&
                t->activate && t->activate_backward && t->softmax && t->to_elements &&
                t->to_floats && t->split && t->dot && t->multiply_add_rounds);
  }
}

TEST(KernelFor, RefusesWhatTheMachineCannotRun) {
  for (Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::amx}) {
    bool supported = false;
    for (Isa other : supported_isas()) supported = supported || other == isa;
    if (supported)
      EXPECT_EQ(kernel_for(isa, Precision::bf16).precision, Precision::bf16);
    else
      EXPECT_THROW(kernel_for(isa, Precision::f32), Error);
  }
}

TEST(KernelFor, PeakIsPlausible) {
  for (const Kernel* t : tables()) {
    if (std::string(t->name).find("emulated") == 0) continue;
    for (unsigned threads :
         {1, 2}) {  // a starved machine may be slow, but not faster than any made
      const double rate = measure_peak_gflops(*t, threads, 0.02);
      EXPECT_GT(rate, 0) << t->name;
      EXPECT_LT(rate, 10000 * threads) << t->name;
    }
  }
}

}  // namespace
}  // namespace fungi::kernel
