// SPDX-License-Identifier: Apache-2.0
// GEMM of int8 tables: as gemm.h, but that a block of rows becomes bytes on its way into L2, that k
// is never cut, and that a tile goes through its epilogue while it is in L1: beside products that
// take half of the time, every pass counts. Internal to this room.
#pragma once

#include "fungi/kernel/bytes.h"
#include "fungi/kernel/ceiling.h"
#include "fungi/kernel/epilogue.h"
#include "fungi/kernel/tables.h"

namespace fungi::kernel {
namespace {

using ByteLeft = LeftOf<int8_t>;
using ByteRight = RightOf<int8_t>;
constexpr size_t kByteRowsBudget = FUNGI_L2_BYTES / 8 * 5;

constexpr size_t kByteStep = Factors<int8_t>::kStep;
constexpr size_t byte_steps(size_t k) {
  return padded(k, kByteStep == 2 ? 2 : kTogether<kByteStep>) / kByteStep;
}
constexpr size_t byte_rows_that_fit(size_t steps) {
  return larger(kByteRowsBudget / (larger(padded(steps, kDepth), 1) * kTileRows * 4), 1) *
         kTileRows;
}

inline size_t byte_gemm_scratch(size_t m, size_t, size_t k) noexcept {
  const size_t steps = byte_steps(k);
  const size_t rows = smaller(padded(m, kTileRows), byte_rows_that_fit(steps));
  return rows * (padded(steps, kDepth) + kPanel) * 4 + rows * sizeof(ByteRow);
}

inline size_t byte_packed_bytes(size_t n, size_t k) noexcept {
  return PackedBytes(n, k).bytes() + padded(n, kPanel) * byte_steps(k) * sizeof(ByteRight);
}

inline void pack_byte_panels(const ByteWeights& w, size_t n, size_t k, void* packed) {
  const size_t steps = byte_steps(k);
  char* panels = static_cast<char*>(packed) + PackedBytes(n, k).bytes();
  __builtin_memset(panels, 0, padded(n, kPanel) * steps * sizeof(ByteRight));
  pack_bytes<kByteStep>(w, n, k, packed, [&](size_t i, size_t j, int q) FUNGI_FORCE {
    const size_t word = (i / kPanel * steps + j / kByteStep) * kPanel + i % kPanel;
    if constexpr (kByteStep == 4) {
      panels[word * 4 + j % 4] = char(q);
    } else {
      const int16_t value = int16_t(q);
      __builtin_memcpy(panels + word * 4 + j % 2 * 2, &value, 2);
    }
  });
}
inline void byte_pack(const float* w, size_t w_stride, bool transposed, size_t n, size_t k,
                      void* packed) noexcept {
  pack_byte_panels({w, w_stride, transposed, nullptr}, n, k, packed);
}
inline void byte_pack_smoothed(const float* w, size_t w_stride, size_t n, size_t k,
                               const float* smoothing, void* packed) noexcept {
  pack_byte_panels({w, w_stride, false, smoothing}, n, k, packed);
}

// As copy_rows() of gemm.h: [depth block][row][kDepth].
inline void copy_byte_rows(size_t rows, size_t k, const bfloat16* x, size_t x_stride,
                           const float* factors, ByteLeft* copy, ByteRow* row) {
  constexpr size_t kColumns = kDepth * kByteStep;
  static_assert(kColumns % kTogether<kByteStep> == 0);
  for (size_t i = 0; i < rows; ++i, x += x_stride) {
    row[i] = factors ? smoothed_byte_row(x, k, factors) : plain_byte_row(x, k);
    for (size_t k0 = 0; k0 < k; k0 += kColumns) {
      ByteLeft* to = copy + (k0 / kColumns * rows + i) * kDepth;
      each_byte_register<kByteStep>(x + k0, smaller(kColumns, k - k0),
                                    factors ? factors + k0 : nullptr, row[i],
                                    [&](size_t j, Words q) FUNGI_FORCE {
                                      __builtin_memcpy(to + j / kByteStep, &q, sizeof q);
                                    });
    }
  }
}

FUNGI_INLINE void prefetch_byte_panel(const ByteRight* panel, size_t begin, size_t end) {
  for (size_t i = begin * kPanel; i < end * kPanel; i += 16) __builtin_prefetch(panel + i, 0, 2);
}

// What the epilogue of these rows will read and write: their products take long enough to fetch it.
FUNGI_INLINE void prefetch_outlet(const ByteOutlet& outlet, size_t first, size_t last) {
  constexpr size_t kBytes = kPanel * sizeof(float);
  for (size_t i = first; i < last; ++i)
    for (size_t b = 0; b < kBytes; b += 64) {
      if (outlet.residual)
        __builtin_prefetch(outlet.residual + i * outlet.residual_stride + b / 4, 0);
      if (outlet.out && outlet.out != outlet.residual)
        __builtin_prefetch(outlet.out + i * outlet.out_stride + b / 4, 1);
      if (outlet.elements && b < kBytes / 2)
        __builtin_prefetch(outlet.elements + i * outlet.element_stride + b / 2, 1);
    }
}

// One panel against a block of rows.
template <Activation A>
void byte_panel(size_t rows, size_t cols, size_t steps, const ByteLeft* copy, const ByteRow* row,
                const ByteRight* b, const float* scales, const float* column_sums,
                const ByteOutlet& outlet, float* sums) {
  const size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (size_t k0 = 0; k0 < steps; k0 += kDepth) {
    const size_t deep = smaller(kDepth, steps - k0);
    const ByteRight* panel = b + k0 * kPanel;
    for (size_t t = 0, i = 0; t < tiles; ++t) {
      const size_t next = rows * (t + 1) / tiles;  // tiles as even as can be
      if (tiles > 2)
        prefetch_byte_panel(panel + deep * kPanel, deep * t / tiles, deep * (t + 1) / tiles);
      if (k0 + deep == steps) prefetch_outlet(outlet, i, next);
      multiply_rows(next - i, deep, copy + k0 * rows + i * kDepth, kDepth, panel, sums + i * kPanel,
                    kPanel, k0 > 0);
      if (k0 + deep == steps) {
        const ByteSums finished{sums, kPanel, row, scales, column_sums};
        if (cols == kPanel)
          outlet.template take_rows<A>(i, next, finished);
        else
          for (size_t r = i; r < next; ++r) outlet.template take<A>(r, cols, finished);
      }
      i = next;
    }
  }
}

inline void byte_gemm(size_t m, const void* x, size_t x_stride, const PackedMatrix& weights,
                      const Epilogue& e, void* scratch) noexcept {
  const PackedView w = view_of(weights);
  if (m == 0 || w.k == 0) return;  // as the other tables
  const PackedBytes layout(w.n, w.k);
  const float* factors = PackedBytes::smoothed(w.data) ? layout.factors(w.data) : nullptr;
  const auto* panels = reinterpret_cast<const ByteRight*>(layout.panels(w.data));
  const size_t steps = byte_steps(w.k), most = byte_rows_that_fit(steps);
  const size_t blocks = (m + most - 1) / most, block = padded((m + blocks - 1) / blocks, kTileRows);
  auto* copy = static_cast<ByteLeft*>(scratch);
  float* sums = reinterpret_cast<float*>(copy + block * padded(steps, kDepth));
  auto* row = reinterpret_cast<ByteRow*>(sums + block * kPanel);
  for (size_t i0 = 0; i0 < m; i0 += block) {
    const size_t rows = smaller(block, m - i0);
    copy_byte_rows(rows, w.k, static_cast<const bfloat16*>(x) + i0 * x_stride, x_stride, factors,
                   copy, row);
    with_activation(e.activation, [&]<Activation A>() FUNGI_FORCE {
      for (size_t j = 0; j < w.n; j += kPanel)
        byte_panel<A>(rows, smaller(kPanel, w.n - j), steps, copy, row, panels + j * steps,
                      PackedBytes::scales(w.data) + j, layout.sums(w.data) + j,
                      ByteOutlet(e, i0, j), sums);
    });
  }
}

constexpr ByteProducts byte_products(const char* name) {
  return {name,      byte_packed_bytes,          byte_pack, byte_pack_smoothed, byte_gemm_scratch,
          byte_gemm, multiply_add_rounds<int8_t>};
}

}  // namespace
}  // namespace fungi::kernel
