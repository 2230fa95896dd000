// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: every table that can run here (real and emulated), random data,
// element rounding, buffers with poisoned margins, and the double criterion (error per entry,
// cosine of the whole).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fungi/kernel/kernel.h"
#include "fungi/kernel/tables.h"
#include "tests/support/print.h"

namespace fungi::kernel {

extern const Kernel emulated_avx512_f32, emulated_avx512_bf16, emulated_pairs_bf16,
    emulated_amx_bf16;

inline std::vector<const Kernel*> tables() {
  std::vector<const Kernel*> list;
  const auto add = [&](const Kernel& table) {  // instruction sets may share one
    if (std::find(list.begin(), list.end(), &table) == list.end()) list.push_back(&table);
  };
  for (Isa isa : supported_isas())
    for (Precision precision : {Precision::f32, Precision::bf16}) add(kernel_for(isa, precision));
  if (cpu().avx512) add(avx512_bf16);  // what machines without products of bf16 use
  if (cpu().avx2)
    for (const Kernel* table :
         {&emulated_avx512_f32, &emulated_avx512_bf16, &emulated_pairs_bf16, &emulated_amx_bf16})
      add(*table);
  return list;
}

class TableTest : public testing::TestWithParam<const Kernel*> {
 protected:
  const Kernel& table() const { return *GetParam(); }
  bool bf16() const { return table().precision == Precision::bf16; }
};

inline std::string table_name(const testing::TestParamInfo<const Kernel*>& info) {
  std::string name = info.param->name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

#define FUNGI_FOR_EVERY_TABLE(suite) \
  INSTANTIATE_TEST_SUITE_P(Tables, suite, testing::ValuesIn(tables()), table_name)

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

inline float to_bf16(float x) {  // nearest, ties to even
  uint32_t u;
  std::memcpy(&u, &x, 4);
  u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &u, 4);
  return x;
}

// Rows of floats that a table can hold exactly, in a wider stride whose margin is poisoned; odd
// base address.
struct Rows {
  size_t rows, cols, stride;
  std::vector<float> memory;

  Rows(size_t r, size_t c, size_t s) : rows(r), cols(c), stride(s), memory(r * s + 1, kPoison) {}
  float* data() { return memory.data() + 1; }
  const float* data() const { return memory.data() + 1; }
  float& operator()(size_t i, size_t j) { return data()[i * stride + j]; }
  float operator()(size_t i, size_t j) const { return data()[i * stride + j]; }

  void expect_margin_untouched() const {
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = cols; j < stride; ++j)
        ASSERT_TRUE(std::isnan((*this)(i, j))) << "column " << j << " of row " << i << " written";
  }
};

inline Rows random_rows(size_t rows, size_t cols, size_t margin, unsigned seed, bool bf16 = false,
                        float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  Rows x(rows, cols, cols + margin);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) {
      const float value = normal(random);
      x(i, j) = bf16 ? to_bf16(value) : value;
    }
  return x;
}

// The same as elements of a table: zeros up to k_multiple, poison beyond; base address odd by one
// element.
struct Elements {
  size_t stride, size;
  Buffer memory;

  Elements(const Kernel& table, const Rows& x, size_t extra = 0)
      : stride(round_up(x.cols, table.k_multiple) + extra * table.k_multiple),
        size(table.element_size),
        memory((x.rows * stride + 1) * size) {
    std::memset(memory.data(), 0xff, memory.bytes());
    const Rows zeros(1, table.k_multiple, table.k_multiple);
    for (size_t i = 0; i < x.rows; ++i) {
      table.to_elements(1, x.cols, x.data() + i * x.stride, x.stride, at(i, 0), stride);
      std::memset(at(i, x.cols), 0, (round_up(x.cols, table.k_multiple) - x.cols) * size);
    }
  }
  std::byte* at(size_t i, size_t j) { return memory.data() + (1 + i * stride + j) * size; }
  void* data() { return at(0, 0); }

  float value(size_t i, size_t j) {
    if (size == 4) {
      float v;
      std::memcpy(&v, at(i, j), 4);
      return v;
    }
    uint16_t half;
    std::memcpy(&half, at(i, j), 2);
    const uint32_t word = uint32_t(half) << 16;
    float v;
    std::memcpy(&v, &word, 4);
    return v;
  }
};

// Exactly as many bytes as asked for, full of NaN.
struct Scratch {
  Buffer memory;
  explicit Scratch(size_t bytes) : memory(bytes) {
    if (bytes) std::memset(memory.data(), 0xff, bytes);
  }
  void* data() { return memory.data(); }
};

inline double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return aa == 0 && bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

inline void expect_close(const std::vector<double>& found, const std::vector<double>& truth,
                         double tolerance, const std::string& what, double cosine_loss = 1e-6) {
  ASSERT_EQ(found.size(), truth.size()) << what;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], truth[i], tolerance) << what << ", entry " << i;
  EXPECT_GE(cosine(found, truth), 1 - cosine_loss) << what;
}

inline std::vector<double> values(const Rows& x) {
  std::vector<double> v;
  for (size_t i = 0; i < x.rows; ++i)
    for (size_t j = 0; j < x.cols; ++j) v.push_back(x(i, j));
  return v;
}

}  // namespace fungi::kernel
