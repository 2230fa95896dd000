// SPDX-License-Identifier: Apache-2.0
// The blocked GEMM driver: y = x · Wᵀ with W packed in panels once. A block of rows of x is copied
// (as floats, or as pairs of bf16) to stay in L2; each panel block (kDepth x kPanel) stays in L1
// while all rows pass; the sums of a few panels stay in L1 until the epilogue takes them. No size
// here depends on where a row stands, and k is always summed in the same blocks. From packing on, k
// is counted in steps of the micro-kernel. Internal to this room.
#pragma once

#include "fungi/kernel/epilogue.h"
#include "fungi/kernel/micro_kernel.h"

namespace fungi::kernel {
namespace {

constexpr size_t kChunk = 4 * kPanel;  // columns between two epilogues
constexpr size_t kLongest = 768;       // of k at a time, so that many rows of x fit L2
constexpr size_t kRowsBudget = FUNGI_L2_BYTES / 8 * 5;

// How m rows and k columns of x are cut: not at all if they fit the budget, else k into equal
// slices and m into equal blocks, as few as can be. Only speed depends on it.
struct Cut {
  size_t rows, depth;
};
constexpr size_t rows_that_fit(size_t depth) {
  return larger(kRowsBudget / (larger(depth, 1) * kTileRows * sizeof(float)), 1) * kTileRows;
}
constexpr size_t slice_depth(size_t k) {
  const size_t slices = larger((k + kLongest - 1) / kLongest, 1);
  return padded((k + slices - 1) / slices, kDepth);
}
constexpr Cut cut(size_t m, size_t k) {
  if (m <= rows_that_fit(padded(k, kDepth))) return {padded(m, kTileRows), padded(k, kDepth)};
  const size_t most = rows_that_fit(slice_depth(k)), blocks = (m + most - 1) / most;
  return {padded((m + blocks - 1) / blocks, kTileRows), slice_depth(k)};
}

// The most that any number of rows up to m needs.
template <class E>
size_t gemm_scratch(size_t m, size_t n, size_t elements) noexcept {
  static_assert(sizeof(LeftOf<E>) == sizeof(float));
  const size_t k = steps_of<E>(elements);
  const size_t whole = padded(k, kDepth), slice = slice_depth(k), rows = padded(m, kTileRows);
  const size_t uncut = smaller(rows, rows_that_fit(whole)) * (whole + kChunk);
  const size_t sums = k > slice ? padded(n, kChunk) : kChunk;
  return larger(uncut, smaller(rows, rows_that_fit(slice)) * (slice + sums)) * sizeof(float);
}

template <class E>
size_t packed_bytes(size_t n, size_t k) noexcept {
  return padded(n, kPanel) * steps_of<E>(k) * sizeof(RightOf<E>);
}

// One step of a panel from a block of rows of Wᵀ; see micro_kernel.h for the order of the halves.
FUNGI_INLINE void store_step(float* panel, const float (*block)[kPanel]) {
  __builtin_memcpy(panel, block[0], sizeof block[0]);
}
FUNGI_INLINE void store_step(bfloat16* panel, const float (*block)[kPanel]) {
  const Words both = rounded_pairs(load(block[0]), load(block[0] + kLanes));
  __builtin_memcpy(panel, &both, sizeof both);
}
FUNGI_INLINE void store_step(Pair* panel, const float (*block)[kPanel]) {
  for (size_t l = 0; l < kPanel; l += kLanes) {
    const Words both = rounded_pairs(load(block[0] + l), load(block[1] + l));
    __builtin_memcpy(panel + l, &both, sizeof both);
  }
}

constexpr size_t kDeep = 16;  // of k at a time when packing: a line of each row of W

// block[i][j] = w[j · w_stride + i] for i < deep, j < columns, a register square at a time.
inline void turn_block(const float* w, size_t w_stride, size_t columns, size_t deep,
                       float (*block)[kPanel]) {
  for (size_t j = 0; j < columns; j += kLanes)
    for (size_t i = 0; i < deep; i += kLanes) {
      Words square[kLanes] = {};
      for (size_t r = 0; r < smaller(kLanes, columns - j); ++r)
        square[r] = Words(load(w + (j + r) * w_stride + i, smaller(kLanes, deep - i)));
      transpose(square);
      for (size_t r = 0; r < kLanes; ++r) store(block[i + r] + j, Floats(square[r]));
    }
}

template <class E>
void pack(const float* w, size_t w_stride, bool transposed, size_t n, size_t k,
          void* packed) noexcept {
  constexpr size_t kStep = Factors<E>::kStep;
  for (size_t first = 0; first < n; first += kPanel) {
    auto* panel = static_cast<RightOf<E>*>(packed) + first * steps_of<E>(k);
    const size_t columns = smaller(kPanel, n - first);
    float block[kDeep][kPanel] = {};
    for (size_t k0 = 0; k0 < k; k0 += kDeep) {
      const size_t deep = smaller(kDeep, k - k0);
      if (transposed)
        for (size_t i = 0; i < deep; ++i)
          __builtin_memcpy(block[i], w + (k0 + i) * w_stride + first, columns * sizeof(float));
      else
        turn_block(w + first * w_stride + k0, w_stride, columns, deep, block);
      if (deep % kStep != 0) __builtin_memset(block[deep], 0, sizeof block[deep]);
      for (size_t i = 0; i < deep; i += kStep, panel += kPanel) store_step(panel, block + i);
    }
  }
}

// Rows of x, k steps of them, cut into [depth block][row][kDepth]: as floats, or as they are.
template <class E>
void copy_rows(size_t rows, size_t k, const E* x, size_t x_stride, float* copy) {
  for (size_t k0 = 0; k0 < k; k0 += kDepth, copy += rows * kDepth)
    for (size_t i = 0; i < rows; ++i)
      for_each_vector(smaller(kDepth, k - k0), [&](size_t j, size_t count) FUNGI_FORCE {
        store(copy + i * kDepth + j, load_elements(x + i * x_stride + k0 + j, count));
      });
}
inline void copy_rows(size_t rows, size_t k, const bfloat16* x, size_t x_stride, Pair* copy) {
  for (size_t k0 = 0; k0 < k; k0 += kDepth, copy += rows * kDepth)
    for (size_t i = 0; i < rows; ++i)
      __builtin_memcpy(copy + i * kDepth, x + i * x_stride + 2 * k0,
                       smaller(kDepth, k - k0) * sizeof(Pair));
}

// Steps [begin, end) of the panel block to come, into L2.
template <class B>
FUNGI_INLINE void prefetch(const B* panel, size_t begin, size_t end) {
  constexpr size_t kLine = 64 / sizeof(B);
  for (size_t i = begin * kPanel; i < end * kPanel; i += kLine) __builtin_prefetch(panel + i, 0, 2);
}

// One chunk of columns against one slice of k; sums [rows, kChunk].
template <class A, class B>
void multiply_chunk(size_t rows, size_t cols, size_t depth, const A* a, const B* b, size_t b_stride,
                    float* sums, bool add) {
  const size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (size_t j = 0; j < cols; j += kPanel, b += b_stride)
    for (size_t k0 = 0; k0 < depth; k0 += kDepth) {
      const size_t deep = smaller(kDepth, depth - k0);
      const B* panel = b + k0 * kPanel;
      for (size_t t = 0, i = 0; t < tiles; ++t) {
        const size_t next = rows * (t + 1) / tiles;  // tiles as even as can be
        if (tiles > 2) prefetch(panel + deep * kPanel, deep * t / tiles, deep * (t + 1) / tiles);
        multiply_rows(next - i, deep, a + k0 * rows + i * kDepth, kDepth, panel,
                      sums + i * kChunk + j, kChunk, add || k0 > 0);
        i = next;
      }
    }
}

// The same for one or two rows, several panels at once: more independent sums, wider streams from
// memory.
template <size_t R, size_t P, class A, class B>
void multiply_few(size_t depth, const A* a, const B* b, size_t b_stride, float* sums, bool add) {
  for (size_t j = 0; j < kChunk; j += P * kPanel, b += P * b_stride)
    for (size_t k0 = 0; k0 < depth; k0 += kDepth)
      multiply_tile<R, P>(smaller(kDepth, depth - k0), a + k0 * R, kDepth, b + k0 * kPanel,
                          b_stride, sums + j, kChunk, add || k0 > 0);
}

template <class E>
void gemm(size_t m, const void* x, size_t x_stride, const PackedMatrix& weights, const Epilogue& e,
          void* scratch) noexcept {
  const PackedView w = view_of(weights);
  const size_t n = w.n, k = steps_of<E>(w.k);
  const Cut c = cut(m, k);
  auto* copy = static_cast<LeftOf<E>*>(scratch);
  float* sums = reinterpret_cast<float*>(copy + c.rows * c.depth);
  const bool whole = k <= c.depth;  // then the sums of one chunk are finished at once
  for (size_t i0 = 0; i0 < m; i0 += c.rows) {
    const size_t rows = smaller(c.rows, m - i0);
    for (size_t k0 = 0; k0 < k; k0 += c.depth) {
      const size_t depth = smaller(c.depth, k - k0);
      copy_rows(rows, depth, static_cast<const E*>(x) + i0 * x_stride + k0 * Factors<E>::kStep,
                x_stride, copy);
      for (size_t j0 = 0; j0 < n; j0 += kChunk) {
        const size_t cols = smaller(kChunk, n - j0);
        const auto* b = static_cast<const RightOf<E>*>(w.data) + j0 * k + k0 * kPanel;
        float* chunk = whole ? sums : sums + j0 * rows;
        if (rows == 1 && cols == kChunk)
          multiply_few<1, 4>(depth, copy, b, k * kPanel, chunk, k0 > 0);
        else if (rows == 2 && cols == kChunk)
          multiply_few<2, 2>(depth, copy, b, k * kPanel, chunk, k0 > 0);
        else
          multiply_chunk(rows, cols, depth, copy, b, k * kPanel, chunk, k0 > 0);
        if (k0 + depth < k) continue;
        const Outlet<E> outlet(e, i0, j0);
        with_activation(e.activation, [&]<Activation A>() FUNGI_FORCE {
          for (size_t i = 0; i < rows; ++i) outlet.template take<A>(i, cols, Sums{chunk, kChunk});
        });
      }
    }
  }
}

}  // namespace
}  // namespace fungi::kernel
