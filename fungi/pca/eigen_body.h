// SPDX-License-Identifier: Apache-2.0
// The loops of EigenKernel with vector extensions; included by eigen_<isa>.cpp inside an anonymous
// namespace, which defines kLanes (doubles per register) and kTileRows (rows of a product whose
// sums, three registers each, stay in registers) first. Internal to this room.

typedef double Vector __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));

inline Vector load(const double* x) noexcept { return *reinterpret_cast<const Vector*>(x); }
inline void store(double* x, Vector v) noexcept { *reinterpret_cast<Vector*>(x) = v; }
// x − 0 is x for every x, which 0 + x is not (−0): a plain broadcast.
inline Vector all(double x) noexcept { return x - Vector{}; }
template <class V>
inline double sum_lanes(V v) noexcept {
  if constexpr (sizeof(V) > 4 * sizeof(double))
    return sum_lanes(__builtin_shufflevector(v, v, 0, 1, 2, 3) +
                     __builtin_shufflevector(v, v, 4, 5, 6, 7));
  else
    return (v[0] + v[2]) + (v[1] + v[3]);
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

// Products ------------------------------------------------------------

constexpr size_t kWide = 3;  // registers of columns
constexpr size_t kTileCols = kWide * kLanes;
constexpr size_t kDeep = 96;                          // of k at a time, so that the copies fit L1
constexpr size_t kHigh = 64 / kTileRows * kTileRows;  // rows at a time

inline size_t smaller(size_t x, size_t y) noexcept { return x < y ? x : y; }

// c [rows, cols] −= a · b; b [k][kTileCols] is a copy padded with zeros, a one of kTileRows rows:
// as columns [k][kTileRows] or as rows [kTileRows][kDeep].
template <bool kColumns>
inline void subtract_tile(size_t k, const double* a, const double* b, size_t rows, size_t cols,
                          double* c, size_t c_stride) noexcept {
  for (size_t r = 0; r < rows; ++r)
    for (size_t w = 0; w < kTileCols; w += 8) __builtin_prefetch(c + r * c_stride + w, 1);
  Vector sum[kTileRows][kWide] = {};
  for (size_t i = 0; i < k; ++i) {
    Vector x[kWide];
    for (size_t w = 0; w < kWide; ++w) x[w] = load(b + i * kTileCols + w * kLanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < kTileRows; ++r) {
      const Vector factor = all(kColumns ? a[i * kTileRows + r] : a[r * kDeep + i]);
      for (size_t w = 0; w < kWide; ++w) sum[r][w] += factor * x[w];
    }
  }
  if (rows == kTileRows && cols == kTileCols) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kTileRows; ++r)
      for (size_t w = 0; w < kWide; ++w) {
        double* to = c + r * c_stride + w * kLanes;
        store(to, load(to) - sum[r][w]);
      }
    return;
  }
  alignas(64) double edge[kTileRows][kTileCols];
#pragma GCC unroll 8
  for (size_t r = 0; r < kTileRows; ++r)
    for (size_t w = 0; w < kWide; ++w) store(edge[r] + w * kLanes, sum[r][w]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t j = 0; j < cols; ++j) c[r * c_stride + j] -= edge[r][j];
}

// Copies `rows` rows of `length` numbers to rows of `wide`, zero behind them. What lies `ahead` is
// copied next: until then it comes to L2.
inline void copy_padded(size_t rows, size_t length, const double* from, size_t stride, size_t wide,
                        double* to, size_t ahead) noexcept {
  for (size_t r = 0; r < rows; ++r, from += stride, to += wide) {
    size_t i = 0;
    for (; i < length; i += 8) __builtin_prefetch(from + ahead + i, 0, 2);
    for (i = 0; i + kLanes <= length; i += kLanes) store(to + i, load(from + i));
    for (; i < length; ++i) to[i] = from[i];
    for (; i < wide; ++i) to[i] = 0;
  }
}

// Both factors are copied: rows whose distance is a power of two would share one set of the cache.
template <bool kColumns>
void subtract_block(size_t high, size_t n, size_t deep, const double* a, size_t a_stride,
                    const double* b, size_t b_stride, double* c, size_t c_stride) noexcept {
  alignas(64) double left[kHigh * kDeep];
  alignas(64) double right[kDeep * kTileCols];
  for (size_t i = 0; i < high; i += kTileRows) {
    const size_t rows = smaller(kTileRows, high - i);
    if (kColumns) {
      copy_padded(deep, rows, a + i, a_stride, kTileRows, left + i * kDeep, kDeep * a_stride);
    } else {
      copy_padded(rows, deep, a + i * a_stride, a_stride, kDeep, left + i * kDeep, kDeep);
      for (size_t l = rows * kDeep; l < kTileRows * kDeep; ++l) left[i * kDeep + l] = 0;
    }
  }
  for (size_t j = 0; j < n; j += kTileCols) {
    const size_t cols = smaller(kTileCols, n - j);
    copy_padded(deep, cols, b + j, b_stride, kTileCols, right, kTileCols);
    for (size_t i = 0; i < high; i += kTileRows)
      subtract_tile<kColumns>(deep, left + i * kDeep, right, smaller(kTileRows, high - i), cols,
                              c + i * c_stride + j, c_stride);
  }
}

void subtract_product(size_t m, size_t n, size_t k, const double* a, size_t a_stride,
                      const double* b, size_t b_stride, double* c, size_t c_stride) noexcept {
  for (size_t i = 0; i < m; i += kHigh)
    for (size_t l = 0; l < k; l += kDeep)
      subtract_block<false>(smaller(kHigh, m - i), n, smaller(kDeep, k - l), a + i * a_stride + l,
                            a_stride, b + l * b_stride, b_stride, c + i * c_stride, c_stride);
}

void subtract_transposed(size_t m, size_t n, size_t k, const double* a, size_t a_stride,
                         const double* b, size_t b_stride, double* c, size_t c_stride) noexcept {
  for (size_t i = 0; i < m; i += kHigh)
    for (size_t l = 0; l < k; l += kDeep)
      subtract_block<true>(smaller(kHigh, m - i), n, smaller(kDeep, k - l), a + l * a_stride + i,
                           a_stride, b + l * b_stride, b_stride, c + i * c_stride, c_stride);
}

// The chase ------------------------------------------------------------

constexpr size_t kBandRegisters = kBand / kLanes;

// What lies below a diagonal in one register, and the diagonal with it: ones and zeros by row.
struct Corner {
  double below[kLanes][kLanes], upto[kLanes][kLanes];
  constexpr Corner() noexcept : below(), upto() {
    for (size_t r = 0; r < kLanes; ++r)
      for (size_t c = 0; c < kLanes; ++c) below[r][c] = c < r, upto[r][c] = c <= r;
  }
};
constexpr Corner kCorner;

// p += a v for R rows from `first` on, each number of the triangle used twice.
template <size_t R>
inline void multiply_triangle(size_t first, const double* v, const double* a, size_t stride,
                              double* p) noexcept {
  Vector sum[R];
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r) {
    const Vector corner = load(a + (first + r) * stride + first) * load(kCorner.upto[r]);
    sum[r] = corner * load(v + first);
    store(p + first, load(p + first) + corner * load(kCorner.below[r]) * all(v[first + r]));
  }
  for (size_t c = 0; c < first; c += kLanes) {
    Vector total = load(p + c);
    const Vector other = load(v + c);
#pragma GCC unroll 8
    for (size_t r = 0; r < R; ++r) {
      const Vector x = load(a + (first + r) * stride + c);
      sum[r] += x * other;
      total += x * all(v[first + r]);
    }
    store(p + c, total);
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R; ++r) p[first + r] += sum_lanes(sum[r]);
}

void reflect_both(size_t length, double tau, const double* v, double* a, size_t stride) noexcept {
  alignas(64) double p[kBand] = {}, w[kBand] = {};
  size_t first = 0;
  for (; first + kLanes <= length; first += kLanes)
    multiply_triangle<kLanes>(first, v, a, stride, p);
  for (size_t r = 0; first + r < length; ++r) {  // at the last rows of the matrix only
    for (size_t c = 0; c < first + r; ++c) {
      p[first + r] += a[(first + r) * stride + c] * v[c];
      p[c] += a[(first + r) * stride + c] * v[first + r];
    }
    p[first + r] += a[(first + r) * stride + first + r] * v[first + r];
  }
  // H a H = a − v wᵀ − w vᵀ with w = τ p − ½ τ² (p · v) v
  const double half = 0.5 * tau * tau * dot(kBand, p, v);
  for (size_t c = 0; c < kBand; c += kLanes)
    store(w + c, all(tau) * load(p + c) - all(half) * load(v + c));
  for (size_t r = 0; r < length; ++r) {
    double* row = a + r * stride;
    const size_t last = r / kLanes * kLanes;
    const Vector vr = all(v[r]), wr = all(w[r]);
    for (size_t c = 0; c < last; c += kLanes)
      store(row + c, load(row + c) - vr * load(w + c) - wr * load(v + c));
    store(row + last, load(row + last) - (vr * load(w + last) + wr * load(v + last)) *
                                             load(kCorner.upto[r - last]));
  }
}

void multiply_band(size_t rows, const double* c, size_t stride, const double* v,
                   double* product) noexcept {
  for (size_t r = 0; r < rows; ++r) {
    Vector sum[2] = {};
    for (size_t l = 0; l < kBandRegisters; l += 2) {
      sum[0] += load(c + r * stride + l * kLanes) * load(v + l * kLanes);
      sum[1] += load(c + r * stride + (l + 1) * kLanes) * load(v + (l + 1) * kLanes);
    }
    product[r] = sum_lanes(sum[0] + sum[1]);
  }
}

void reflect_left(size_t rows, double* c, size_t stride, const double* left, const double* v,
                  double tau, const double* u, double u_left) noexcept {
  for (size_t l = 0; l < kBand; l += 3 * kLanes) {
    Vector sum[3] = {}, factor[3];  // uᵀ (c − left vᵀ)
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < 3; ++i) sum[i] += all(u[r]) * load(c + r * stride + l + i * kLanes);
    for (size_t i = 0; i < 3; ++i) {
      factor[i] = load(v + l + i * kLanes);
      sum[i] = all(tau) * (sum[i] - all(u_left) * factor[i]);
    }
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < 3; ++i) {
        double* to = c + r * stride + l + i * kLanes;
        store(to, load(to) - all(left[r]) * factor[i] - all(u[r]) * sum[i]);
      }
  }
}

// Both reflections at once, so that z is read twice instead of four times:
// z − τ v (v · z) − σ u (u · (z − τ v (v · z))).
void reflect_columns(size_t length, double tau, const double* v, size_t u_length, double sigma,
                     const double* u, double* z) noexcept {
  constexpr size_t kRow = kTileCols;
  double* behind = z + kRow;         // v begins one row after u
  const size_t both = u_length - 1;  // rows that both meet; length is as many or one more
  Vector along_v[2][kWide] = {}, along_u[2][kWide] = {};  // of even and odd rows
  for (size_t i = 0; i < kWide; ++i) along_u[0][i] = all(u[0]) * load(z + i * kLanes);
  size_t r = 0;
  const auto take = [&](size_t row, size_t half) __attribute__((always_inline)) {
    for (size_t i = 0; i < kWide; ++i) {
      const Vector x = load(behind + row * kRow + i * kLanes);
      along_v[half][i] += all(v[row]) * x;
      along_u[half][i] += all(u[row + 1]) * x;
    }
  };
  for (; r + 2 <= both; r += 2) take(r, 0), take(r + 1, 1);
  if (r < both) take(r, 0);
  if (length > both)
    for (size_t i = 0; i < kWide; ++i)
      along_v[0][i] += all(v[both]) * load(behind + both * kRow + i * kLanes);
  const Vector product = all(dot(both, u + 1, v));
  Vector on_v[kWide], on_u[kWide];
  for (size_t i = 0; i < kWide; ++i) {
    on_v[i] = all(tau) * (along_v[0][i] + along_v[1][i]);
    on_u[i] = all(sigma) * (along_u[0][i] + along_u[1][i] - product * on_v[i]);
    store(z + i * kLanes, load(z + i * kLanes) - all(u[0]) * on_u[i]);
  }
  for (r = 0; r < both; ++r)
    for (size_t i = 0; i < kWide; ++i) {
      double* to = behind + r * kRow + i * kLanes;
      store(to, load(to) - all(v[r]) * on_v[i] - all(u[r + 1]) * on_u[i]);
    }
  if (length > both)
    for (size_t i = 0; i < kWide; ++i) {
      double* to = behind + both * kRow + i * kLanes;
      store(to, load(to) - all(v[both]) * on_v[i]);
    }
}

constexpr EigenKernel table = {subtract_product, subtract_transposed, add_two,      dot,
                               reflect_both,     multiply_band,       reflect_left, reflect_columns,
                               kTileCols};
