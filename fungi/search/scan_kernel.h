// SPDX-License-Identifier: Apache-2.0
// The inner loops of the exact search, one table per instruction set: true distances in f64, and
// the coarse scan that proves most rows too far away. Kernels are noexcept, check nothing, allocate
// nothing and keep no state.
//
// The scan works on bytes. A prepared row v (f32) is written as v = scale · code + residual with
// 8-bit codes; the dot product of two codes is an exact integer, and by Cauchy-Schwarz
//     | v·w − v̂·ŵ |  =  | v̂·(w−ŵ) + (v−v̂)·w |  ≤  ‖v̂‖ ‖w−ŵ‖ + ‖v−v̂‖ ‖w‖ ,
// so that  bias − w·v̂·ŵ − (norm · residual' + residual · norm')  is below the true key, whatever
// the rounding did. Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fungi {
enum class Isa;
}

namespace fungi::search {

// A row that the scan could not exclude, and the lower bound of its key.
struct Hit {
  uint32_t row;
  float lower;
};

// Per database row: key ≥ bias_j − q.scale · scale_j · (dot − offset_j) − (q.norm · residual_j +
// q.residual · norm_j).
struct RowTerms {
  const float *bias, *scale, *residual, *norm;
  const int32_t* offset;  // null for scans whose dot products are floats
};

// Per query; a row is a hit unless its lower bound is greater than `limit`.
struct QueryTerms {
  float scale, residual, norm, limit;
};

inline constexpr size_t kCodeMultiple = 8;  // codes are padded with zeros to a multiple of this
inline constexpr size_t kPanelRows = 16;    // database rows side by side in one panel
inline constexpr int kCodeOffset = 128;     // query codes are stored as code + 128, unsigned
// Queries scanned together: a table says how many, all divide this one.
inline constexpr size_t kQueryGroups = 12;
// Sums of 255 · 127 per column must fit 32 bits.
inline constexpr size_t kWidestCodes = size_t{1} << 16;

struct CodeTerms {
  double scale;     // v̂ = scale · code
  double norm;      // ‖v̂‖
  double residual;  // ‖v − v̂‖
  int32_t sum;      // Σ code
};

struct ScanKernel {
  const char* name;
  size_t query_group;  // queries scanned together, a divisor of kQueryGroups

  // Σ (x−y)² and Σ x·y in f64: sixteen interleaved sums, added pairwise at the end, never fused:
  // the same bits from every table.
  double (*squared_distance)(size_t d, const float* x, const float* y) noexcept;
  double (*inner_product)(size_t d, const float* x, const float* y) noexcept;

  // The same sums in f32: thrice as fast, with a relative error of at most (d + 8) · 2^-24 of Σ
  // (x−y)², or of ‖x‖‖y‖.
  float (*rough_distance)(size_t d, const float* x, const float* y) noexcept;
  float (*rough_product)(size_t d, const float* x, const float* y) noexcept;

  // sum[c] += row[c], in f64.
  void (*accumulate)(size_t d, const float* row, double* sum) noexcept;

  // The 8-bit codes of v [d_padded]. Where scan_bytes adds in 16 bits, row codes obey a tighter
  // limit than ±127 and query codes one on the length of four neighbours (scan_body.h has the
  // argument): codes are for the table that made them.
  CodeTerms (*encode)(bool query, size_t d_padded, const float* v, int8_t* codes) noexcept;

  // Scans one group of queries (codes interleaved: [d_padded/4][query_group][4], offset to
  // unsigned) against `rows` rows in panels ([panel][d_padded/4][kPanelRows][4]). hits:
  // [query_group][capacity], capacity ≥ rows.
  void (*scan_bytes)(size_t d_padded, size_t rows, const uint8_t* queries, const int8_t* panels,
                     const RowTerms& terms, const QueryTerms* query_terms, Hit* hits,
                     size_t capacity, uint32_t* counts) noexcept;

  // The same decision where the dot products are already there as floats. Returns the number of
  // hits.
  uint32_t (*filter)(size_t rows, const float* dots, const RowTerms& terms, const QueryTerms& query,
                     Hit* hits) noexcept;
};

// The table for an instruction set. avx512 and amx have one of their own where the processor
// multiplies bytes (VNNI); elsewhere they use the avx2 one.
const ScanKernel& scan_kernel(Isa isa);

extern const ScanKernel kScanGeneric, kScanAvx2, kScanVnni;

}  // namespace fungi::search
