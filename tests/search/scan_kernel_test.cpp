// SPDX-License-Identifier: Apache-2.0
// Every scan table this machine can run: the same f64 bits, and products of codes that are exact
// integers even where every code is as large as it can be.
#include "fungi/search/scan_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/matrix.h"
#include "fungi/base/random.h"

namespace fungi::search {
namespace {

std::vector<const ScanKernel*> tables() {
  std::vector<const ScanKernel*> list;
  for (Isa isa : supported_isas())
    if (list.empty() || list.back() != &scan_kernel(isa)) list.push_back(&scan_kernel(isa));
  return list;
}

// Rows whose numbers all have the size of the largest (signs by chance, all the same, alternating),
// and ordinary ones.
Matrix<float> hostile(size_t rows, size_t width, uint64_t seed) {
  Matrix<float> m(rows, width);
  const RandomStream random(seed, "scan kernel test");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < width; ++c) {
      const double x = random.normal(i * width + c);
      const float signs[] = {x < 0 ? -1.0f : 1.0f, 1.0f, -1.0f, c % 2 ? 1.0f : -1.0f, float(x)};
      m(i, c) = 3.7f * signs[i % 5];
    }
  return m;
}

// [group][width/4][members][4], as scan_kernel.h says.
template <class T>
void interleave(const int8_t* codes, size_t row, size_t members, size_t width, int offset,
                std::vector<T>& out) {
  for (size_t c = 0; c < width; ++c)
    out[row / members * members * width + c / 4 * 4 * members + row % members * 4 + c % 4] =
        T(codes[c] + offset);
}

TEST(ScanKernel, integer_products_are_exact_for_the_largest_codes) {
  for (const ScanKernel* table : tables())
    for (size_t width : {8u, 24u, 512u})
      for (size_t rows : {1u, 16u, 37u, 48u}) {
        SCOPED_TRACE(std::string(table->name) + " " + std::to_string(width) + " x " +
                     std::to_string(rows));
        const size_t queries = table->query_group, padded = round_up(rows, kPanelRows);
        const Matrix<float> x = hostile(queries, width, 1), y = hostile(rows, width, 2);
        std::vector<int8_t> x_codes(queries * width), y_codes(rows * width);
        std::vector<uint8_t> group(queries * width, 0);
        std::vector<int8_t> panels(padded * width, 0);
        std::vector<int32_t> offset(padded, 0);
        for (size_t i = 0; i < queries; ++i) {
          table->encode(true, width, x.row(i), &x_codes[i * width]);
          interleave(&x_codes[i * width], i, queries, width, kCodeOffset, group);
        }
        for (size_t j = 0; j < rows; ++j) {
          offset[j] = kCodeOffset * table->encode(false, width, y.row(j), &y_codes[j * width]).sum;
          interleave(&y_codes[j * width], j, kPanelRows, width, 0, panels);
        }
        const std::vector<float> zero(padded, 0.0f), one(padded, 1.0f);
        const RowTerms terms{zero.data(), one.data(), zero.data(), zero.data(), offset.data()};
        const std::vector<QueryTerms> query_terms(
            queries, {1, 0, 0, std::numeric_limits<float>::infinity()});
        std::vector<Hit> hits(queries * padded);
        std::vector<uint32_t> counts(queries);
        table->scan_bytes(width, rows, group.data(), panels.data(), terms, query_terms.data(),
                          hits.data(), padded, counts.data());
        for (size_t i = 0; i < queries; ++i) {
          ASSERT_EQ(counts[i], rows);
          for (size_t j = 0; j < rows; ++j) {
            int32_t product = 0;
            for (size_t c = 0; c < width; ++c)
              product += int32_t(x_codes[i * width + c]) * y_codes[j * width + c];
            EXPECT_EQ(hits[i * padded + j].row, j);
            EXPECT_EQ(hits[i * padded + j].lower, float(-product)) << i << " " << j;
          }
        }
      }
}

TEST(ScanKernel, codes_and_residual_make_the_row) {
  const size_t width = 64;
  const Matrix<float> rows = hostile(20, width, 3);
  for (const ScanKernel* table : tables())
    for (bool query : {false, true})
      for (size_t i = 0; i < 20; ++i) {
        std::vector<int8_t> codes(width);
        const CodeTerms terms = table->encode(query, width, rows.row(i), codes.data());
        double residual = 0, norm = 0;
        int32_t sum = 0, largest = 0;
        for (size_t c = 0; c < width; ++c) {
          const double value = terms.scale * codes[c], rest = rows(i, c) - value;
          residual += rest * rest, norm += value * value, sum += codes[c];
          largest = std::max(largest, std::abs(int32_t(codes[c])));
        }
        EXPECT_NEAR(terms.residual, std::sqrt(residual), 1e-6 * std::sqrt(norm)) << table->name;
        EXPECT_NEAR(terms.norm, std::sqrt(norm), 1e-9 * std::sqrt(norm)) << table->name;
        EXPECT_EQ(terms.sum, sum);
        // Only the table that adds in 16 bits has to stay below the whole range.
        if (std::string(table->name) != "avx2") {
          EXPECT_EQ(largest, 127);
        }
      }
}

TEST(ScanKernel, f64_sums_have_the_same_bits_in_every_table) {
  const Matrix<float> rows = hostile(10, 1031, 4);
  const ScanKernel& first = *tables().front();
  for (const ScanKernel* table : tables())
    for (size_t width : {1u, 7u, 16u, 33u, 512u, 1031u})
      for (size_t i = 0; i < 10; ++i) {
        const float *x = rows.row(i), *y = rows.row((i + 4) % 10);
        EXPECT_EQ(table->squared_distance(width, x, y), first.squared_distance(width, x, y));
        EXPECT_EQ(table->inner_product(width, x, y), first.inner_product(width, x, y));
        const double distance = first.squared_distance(width, x, y),
                     product = first.inner_product(width, x, y),
                     lengths = std::sqrt(first.inner_product(width, x, x) *
                                         first.inner_product(width, y, y)),
                     relative = (double(width) + 8) * 0x1p-24;
        EXPECT_NEAR(table->rough_distance(width, x, y), distance, relative * distance);
        EXPECT_NEAR(table->rough_product(width, x, y), product, relative * lengths);
      }
}

TEST(ScanKernel, the_table_follows_the_instruction_set) {
  EXPECT_STREQ(scan_kernel(Isa::generic).name, "generic");
  if (cpu().avx2) {
    EXPECT_STREQ(scan_kernel(Isa::avx2).name, "avx2");
  }
  if (cpu().avx512) {
    EXPECT_STREQ(scan_kernel(Isa::avx512).name, cpu().avx512_vnni ? "vnni" : "avx2");
  }
}

}  // namespace
}  // namespace fungi::search
