// SPDX-License-Identifier: Apache-2.0
// The loops of CovarianceKernel with vector extensions; included by covariance_<isa>.cpp inside an
// anonymous namespace, which defines kLanes (floats per register) and kRows (rows of a product
// whose sums, three registers each, stay in registers) first. Internal to this room.

typedef float Floats __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));

constexpr size_t kWide = 3;
constexpr size_t kColumns = kWide * kLanes;
static_assert(kColumns % kRows == 0);

inline Floats load(const float* x) noexcept { return *reinterpret_cast<const Floats*>(x); }
inline void store(float* x, Floats v) noexcept { *reinterpret_cast<Floats*>(x) = v; }

void take_panel(size_t rows, size_t cols, const float* x, size_t x_stride, const float* shift,
                float* panel, double* sum) noexcept {
  constexpr size_t kAhead = 8;  // rows lie pages apart, where no hardware looks ahead
  if (cols < kColumns) {
    for (size_t i = 0; i < rows; ++i)
      for (size_t c = 0; c < kColumns; ++c) {
        panel[i * kColumns + c] = c < cols ? x[i * x_stride + c] - shift[c] : 0.0f;
        sum[c] += panel[i * kColumns + c];
      }
    return;
  }
  Floats less[kWide];
  Doubles total[kWide];
  for (size_t w = 0; w < kWide; ++w) {
    less[w] = load(shift + w * kLanes);
    total[w] = *reinterpret_cast<const Doubles*>(sum + w * kLanes);
  }
  for (size_t i = 0; i < rows; ++i, x += x_stride, panel += kColumns) {
    for (size_t c = 0; c < kColumns; c += 16) __builtin_prefetch(x + kAhead * x_stride + c);
    for (size_t w = 0; w < kWide; ++w) {
      const Floats value = load(x + w * kLanes) - less[w];
      store(panel + w * kLanes, value);
      total[w] += __builtin_convertvector(value, Doubles);
    }
  }
  for (size_t w = 0; w < kWide; ++w) *reinterpret_cast<Doubles*>(sum + w * kLanes) = total[w];
}

void add_products(size_t rows, const float* x, const float* y, float* c, size_t c_stride) noexcept {
  for (size_t r0 = 0; r0 < kColumns; r0 += kRows) {
    Floats sum[kRows][kWide] = {};
    for (size_t i = 0; i < rows; ++i) {
      Floats right[kWide];
      for (size_t w = 0; w < kWide; ++w) right[w] = load(y + i * kColumns + w * kLanes);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const Floats left = x[i * kColumns + r0 + r] - Floats{};
        for (size_t w = 0; w < kWide; ++w) sum[r][w] += left * right[w];
      }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
      for (size_t w = 0; w < kWide; ++w) {
        float* to = c + (r0 + r) * c_stride + w * kLanes;
        store(to, load(to) + sum[r][w]);
      }
  }
}

constexpr CovarianceKernel table = {kColumns, take_panel, add_products};
