// SPDX-License-Identifier: Apache-2.0
// Everything that an instruction-set file is made of. The file defines FUNGI_VECTOR_BYTES,
// FUNGI_TILE_ROWS and FUNGI_TILE_DEPTH (and FUNGI_PAIRS where the processor multiplies pairs of
// bf16), includes this, and exports tables built by table_of(). All the rest has internal linkage.
// Internal to this room.
#pragma once

#include "fungi/kernel/attention_backward.h"
#include "fungi/kernel/ceiling.h"
#include "fungi/kernel/gemm.h"
#include "fungi/kernel/tables.h"

namespace fungi::kernel {
namespace {

// What tables with and without tiles have in common.
template <class E>
constexpr Kernel common_table(const char* name) {
  Kernel t;
  t.name = name;
  t.precision = sizeof(E) == 4 ? Precision::f32 : Precision::bf16;
  t.element_size = sizeof(E);
  t.k_multiple = 64 / sizeof(E);
  t.attention_backward = attention_backward<E>;
  t.norm = norm<E>;
  t.norm_backward = norm_backward;
  t.activate = activate;
  t.activate_backward = activate_backward;
  t.softmax = softmax;
  t.to_elements = to_elements<E>;
  t.to_floats = to_floats<E>;
  t.split = split<E>;
  t.dot = dot;
  return t;
}

template <class E>
constexpr Kernel table_of(const char* name) {
  Kernel t = common_table<E>(name);
  t.packed_bytes = packed_bytes<E>;
  t.pack = pack<E>;
  t.gemm_scratch = gemm_scratch<E>;
  t.attention_scratch = attention_scratch;
  t.gemm = gemm<E>;
  t.attention = attention<E>;
  t.multiply_add_rounds = multiply_add_rounds<E>;
  return t;
}

}  // namespace
}  // namespace fungi::kernel
