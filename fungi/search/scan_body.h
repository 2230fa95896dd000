// SPDX-License-Identifier: Apache-2.0
// The loops of ScanKernel, written once with vector extensions and compiled once per instruction
// set. Included by scan_<isa>.cpp inside an anonymous namespace, which defines kNarrowSums (whether
// scan_bytes adds in 16 bits) first; -ffp-contract=off keeps every table's f64 sums identical.
// Internal to this room.

typedef float Float4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Float8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Int4 __attribute__((vector_size(16)));
typedef double Double4 __attribute__((vector_size(32)));

inline double sum_lanes(Double4 a, Double4 b, Double4 c, Double4 d) noexcept {
  const Double4 s = (a + c) + (b + d);
  return (s[0] + s[2]) + (s[1] + s[3]);
}

inline Double4 widen(const float* x) noexcept {
  return __builtin_convertvector(*reinterpret_cast<const Float4*>(x), Double4);
}

double squared_distance(size_t d, const float* x, const float* y) noexcept {
  Double4 sum[4] = {};
  size_t i = 0;
  for (; i + 16 <= d; i += 16)
    for (size_t l = 0; l < 4; ++l) {
      const Double4 t = widen(x + i + 4 * l) - widen(y + i + 4 * l);
      sum[l] += t * t;
    }
  for (; i < d; ++i) {
    const double t = double(x[i]) - double(y[i]);
    sum[i % 16 / 4][i % 4] += t * t;
  }
  return sum_lanes(sum[0], sum[1], sum[2], sum[3]);
}

double inner_product(size_t d, const float* x, const float* y) noexcept {
  Double4 sum[4] = {};
  size_t i = 0;
  for (; i + 16 <= d; i += 16)
    for (size_t l = 0; l < 4; ++l) sum[l] += widen(x + i + 4 * l) * widen(y + i + 4 * l);
  for (; i < d; ++i) sum[i % 16 / 4][i % 4] += double(x[i]) * double(y[i]);
  return sum_lanes(sum[0], sum[1], sum[2], sum[3]);
}

inline float sum_lanes(const Float8* sum) noexcept {
  const Float8 s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

float rough_distance(size_t d, const float* x, const float* y) noexcept {
  Float8 sum[4] = {};
  size_t i = 0;
  for (; i + 32 <= d; i += 32)
    for (size_t l = 0; l < 4; ++l) {
      const Float8 t = *reinterpret_cast<const Float8*>(x + i + 8 * l) -
                       *reinterpret_cast<const Float8*>(y + i + 8 * l);
      sum[l] += t * t;
    }
  for (; i < d; ++i) sum[i % 32 / 8][i % 8] += (x[i] - y[i]) * (x[i] - y[i]);
  return sum_lanes(sum);
}

void accumulate(size_t d, const float* row, double* sum) noexcept {
  for (size_t c = 0; c < d; ++c) sum[c] += row[c];
}

float rough_product(size_t d, const float* x, const float* y) noexcept {
  Float8 sum[4] = {};
  size_t i = 0;
  for (; i + 32 <= d; i += 32)
    for (size_t l = 0; l < 4; ++l)
      sum[l] += *reinterpret_cast<const Float8*>(x + i + 8 * l) *
                *reinterpret_cast<const Float8*>(y + i + 8 * l);
  for (; i < d; ++i) sum[i % 32 / 8][i % 8] += x[i] * y[i];
  return sum_lanes(sum);
}

// How large codes may be: ±127, and less where sums are narrow. There scan_bytes multiplies
// unsigned query codes u = q + 128 with row codes p and adds, in 16 bits, the products of two
// neighbours of one step of four and of the two neighbours standing at the same place of the next
// step: a "quad". No sum may leave 16 bits (vpmaddubsw would saturate). With |q|₂ ≤ kQuadNorm on
// every quad,
//     | Σ u p |  =  | 128 Σ p + Σ q p |  ≤  128 |Σ p| + kQuadNorm |p|₂  ≤  32700
// is what row codes must obey on every quad and on each of its two pairs. Rounding to integers adds
// at most 2 to |Σ p| and 1 to a quad's norm, which the limits below leave room for.
constexpr float kQuadNorm = 140.0f, kLargestCode = 127.0f;
constexpr float kRowLimit = 32700.0f - 128.0f * 2.0f - kQuadNorm;

inline Float4 larger(Float4 a, Float4 b) noexcept { return a > b ? a : b; }
inline Float4 magnitude(Float4 a) noexcept { return larger(a, -a); }
inline float largest_lane(Float4 a) noexcept {
  const float x = a[0] > a[1] ? a[0] : a[1], y = a[2] > a[3] ? a[2] : a[3];
  return x > y ? x : y;
}
inline Float4 square_root(Float4 a) noexcept {
  for (int l = 0; l < 4; ++l) a[l] = __builtin_sqrtf(a[l]);
  return a;
}
inline Float4 load(const float* x) noexcept { return *reinterpret_cast<const Float4*>(x); }

// The largest |v|, and the largest of what the limits above bound, over all quads of normal · v.
inline float largest_cost(bool query, size_t d_padded, const float* v, float normal) noexcept {
  Float4 cost = {};
  for (size_t i = 0; i < d_padded; i += 8) {
    const Float4 a = load(v + i) * normal, b = load(v + i + 4) * normal;
    const Float4 a_next = __builtin_shufflevector(a, a, 1, 0, 3, 2);
    const Float4 b_next = __builtin_shufflevector(b, b, 1, 0, 3, 2);
    const Float4 a_square = a * a + a_next * a_next, b_square = b * b + b_next * b_next;
    if (query) {
      cost = larger(cost, a_square + b_square);
    } else {
      const Float4 a_sum = a + a_next, b_sum = b + b_next;
      cost = larger(cost, 128.0f * magnitude(a_sum) + kQuadNorm * square_root(a_square));
      cost = larger(cost, 128.0f * magnitude(b_sum) + kQuadNorm * square_root(b_square));
      cost = larger(
          cost, 128.0f * magnitude(a_sum + b_sum) + kQuadNorm * square_root(a_square + b_square));
    }
  }
  const float result = largest_lane(cost);
  return query ? __builtin_sqrtf(result) : result;
}

CodeTerms encode(bool query, size_t d_padded, const float* v, int8_t* codes) noexcept {
  Float4 lanes = {};
  for (size_t i = 0; i < d_padded; i += 4) lanes = larger(lanes, magnitude(load(v + i)));
  const float largest = largest_lane(lanes);
  // A power of two brings the row into a range where squares neither vanish nor overflow. Rows too
  // small for that get zero codes: then the residual is the whole row and the bound still holds.
  int exponent = 0;
  __builtin_frexpf(largest, &exponent);
  CodeTerms terms{};
  float multiplier = 0;
  if (largest > 0 && exponent > -100) {
    const float normal = __builtin_ldexpf(1.0f, -exponent);
    float inverse = kLargestCode / (largest * normal);
    if constexpr (kNarrowSums) {
      const float limit =
          (query ? kQuadNorm - 1.1f : kRowLimit) / largest_cost(query, d_padded, v, normal);
      if (limit < inverse) inverse = limit;
    }
    terms.scale = __builtin_ldexp(1.0 / double(inverse), exponent);
    multiplier = inverse * normal;
  }
  constexpr float kRound = 12582912.0f;  // adding 1.5 · 2^23 rounds to the nearest integer
  Int4 sum = {}, squares = {};
  Double4 residual = {};
  for (size_t i = 0; i < d_padded; i += 4) {
    const Float4 rounded = (load(v + i) * multiplier + kRound) - kRound;
    const Int4 code = __builtin_convertvector(rounded, Int4);
    for (int l = 0; l < 4; ++l) codes[i + l] = int8_t(code[l]);
    sum += code;
    squares += code * code;
    const Double4 r = widen(v + i) - terms.scale * __builtin_convertvector(rounded, Double4);
    residual += r * r;
  }
  terms.sum = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  terms.norm =
      terms.scale * __builtin_sqrt(double((squares[0] + squares[1]) + (squares[2] + squares[3])));
  terms.residual = __builtin_sqrt((residual[0] + residual[1]) + (residual[2] + residual[3]));
  return terms;
}

inline float lower_bound(size_t j, float dot, const RowTerms& t, const QueryTerms& q) noexcept {
  return t.bias[j] - q.scale * (t.scale[j] * dot) -
         (q.norm * t.residual[j] + q.residual * t.norm[j]);
}

uint32_t filter(size_t rows, const float* dots, const RowTerms& terms, const QueryTerms& query,
                Hit* hits) noexcept {
  constexpr size_t kStep = 16;
  uint32_t count = 0;
  size_t j = 0;
  for (; j + kStep <= rows; j += kStep) {
    float lower[kStep];
    int any = 0;
    for (size_t l = 0; l < kStep; ++l) lower[l] = lower_bound(j + l, dots[j + l], terms, query);
    for (size_t l = 0; l < kStep; ++l) any |= !(lower[l] > query.limit);
    if (!any) continue;
    for (size_t l = 0; l < kStep; ++l)
      if (!(lower[l] > query.limit)) hits[count++] = {uint32_t(j + l), lower[l]};
  }
  for (; j < rows; ++j) {
    const float lower = lower_bound(j, dots[j], terms, query);
    if (!(lower > query.limit)) hits[count++] = {uint32_t(j), lower};
  }
  return count;
}
