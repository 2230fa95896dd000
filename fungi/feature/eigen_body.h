// SPDX-License-Identifier: Apache-2.0
// The loops of EigenKernel with vector extensions; included by eigen_<isa>.cpp inside an anonymous
// namespace, which defines kLanes (doubles per register) first.

typedef double Vector __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));

inline Vector load(const double* x) noexcept { return *reinterpret_cast<const Vector*>(x); }
inline void store(double* x, Vector v) noexcept { *reinterpret_cast<Vector*>(x) = v; }
inline Vector all(double x) noexcept { return Vector{} + x; }
inline double sum_lanes(Vector v) noexcept {
  double s = 0;
  for (size_t l = 0; l < kLanes; ++l) s += v[l];
  return s;
}

double dot(size_t n, const double* x, const double* y) noexcept {
  Vector sum[4] = {};
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (size_t l = 0; l < 4; ++l) sum[l] += load(x + i + l * kLanes) * load(y + i + l * kLanes);
  for (; i + kLanes <= n; i += kLanes) sum[0] += load(x + i) * load(y + i);
  double s = sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; i < n; ++i) s += x[i] * y[i];
  return s;
}

void add_two(size_t n, double s, const double* x, double t, const double* z, double* y) noexcept {
  const Vector sv = all(s), tv = all(t);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, load(y + i) + sv * load(x + i) + tv * load(z + i));
  for (; i < n; ++i) y[i] += s * x[i] + t * z[i];
}

// Four rows at a time: each number of a is read once for both triangles, q once per four rows.
void symmetric_product(size_t begin, size_t end, size_t n, const double* a, size_t stride,
                       const double* v, double* p, double* q) noexcept {
  constexpr size_t kRows = 4;
  size_t r = begin;
  for (; r + kRows <= end; r += kRows) {
    const double* row[kRows];
    Vector sum[kRows] = {}, factor[kRows];
    double corner[kRows] = {};
    for (size_t l = 0; l < kRows; ++l) row[l] = a + (r + l) * stride, factor[l] = all(v[r + l]);
    for (size_t l = 0; l < kRows; ++l) {  // the triangle within the four rows
      corner[l] = row[l][r + l] * v[r + l];
      for (size_t c = r + l + 1; c < r + kRows; ++c) {
        corner[l] += row[l][c] * v[c];
        q[c] += row[l][c] * v[r + l];
      }
    }
    size_t c = r + kRows;
    for (; c + kLanes <= n; c += kLanes) {
      const Vector x = load(v + c);
      Vector y = load(q + c);
#pragma GCC unroll 4
      for (size_t l = 0; l < kRows; ++l) {
        const Vector value = load(row[l] + c);
        sum[l] += value * x;
        y += value * factor[l];
      }
      store(q + c, y);
    }
    for (size_t l = 0; l < kRows; ++l) corner[l] += sum_lanes(sum[l]);
    for (; c < n; ++c)
      for (size_t l = 0; l < kRows; ++l) {
        corner[l] += row[l][c] * v[c];
        q[c] += row[l][c] * v[r + l];
      }
    for (size_t l = 0; l < kRows; ++l) p[r + l] = corner[l];
  }
  for (; r < end; ++r) {
    const double* row = a + r * stride;
    p[r] = row[r] * v[r] + dot(n - r - 1, row + r + 1, v + r + 1);
    for (size_t c = r + 1; c < n; ++c) q[c] += row[c] * v[r];
  }
}

// R rows of c against kWide vectors of columns.
template <size_t R, size_t W>
inline void subtract_tile(size_t k, const double* a, size_t a_stride, const double* b,
                          size_t b_stride, double* c, size_t c_stride) noexcept {
  Vector sum[R][W] = {};
  for (size_t i = 0; i < k; ++i) {
    Vector x[W];
    for (size_t w = 0; w < W; ++w) x[w] = load(b + i * b_stride + w * kLanes);
#pragma GCC unroll 4
    for (size_t r = 0; r < R; ++r) {
      const Vector factor = all(a[r * a_stride + i]);
      for (size_t w = 0; w < W; ++w) sum[r][w] += factor * x[w];
    }
  }
  for (size_t r = 0; r < R; ++r)
    for (size_t w = 0; w < W; ++w) {
      double* to = c + r * c_stride + w * kLanes;
      store(to, load(to) - sum[r][w]);
    }
}

void subtract_product(size_t m, size_t n, size_t k, const double* a, size_t a_stride,
                      const double* b, size_t b_stride, double* c, size_t c_stride) noexcept {
  constexpr size_t kDepth = 128, kRows = 4, kWide = 3, kCols = kWide * kLanes;
  alignas(64) double
      copy[kDepth * kCols];  // rows of b whose distance is a power of two would share one cache set
  for (size_t k0 = 0; k0 < k; k0 += kDepth) {
    const size_t deep = k - k0 < kDepth ? k - k0 : kDepth;
    const double* b0 = b + k0 * b_stride;
    size_t j = 0;
    for (; j + kCols <= n; j += kCols) {
      for (size_t l = 0; l < deep; ++l)
        for (size_t w = 0; w < kCols; w += kLanes)
          store(copy + l * kCols + w, load(b0 + l * b_stride + j + w));
      size_t i = 0;
      for (; i + kRows <= m; i += kRows)
        subtract_tile<kRows, kWide>(deep, a + i * a_stride + k0, a_stride, copy, kCols,
                                    c + i * c_stride + j, c_stride);
      for (; i < m; ++i)
        subtract_tile<1, kWide>(deep, a + i * a_stride + k0, a_stride, copy, kCols,
                                c + i * c_stride + j, c_stride);
    }
    for (; j + kLanes <= n; j += kLanes)
      for (size_t i = 0; i < m; ++i)
        subtract_tile<1, 1>(deep, a + i * a_stride + k0, a_stride, b0 + j, b_stride,
                            c + i * c_stride + j, c_stride);
    for (; j < n; ++j)
      for (size_t i = 0; i < m; ++i) {
        double sum = 0;
        for (size_t l = 0; l < deep; ++l) sum += a[i * a_stride + k0 + l] * b0[l * b_stride + j];
        c[i * c_stride + j] -= sum;
      }
  }
}
