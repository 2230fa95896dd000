// SPDX-License-Identifier: Apache-2.0
// Four sources of rows: counter-based signs, the references' signs, a table of 65536 values, a
// matrix in memory.
#include "fungi/projection/rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "fungi/base/random.h"
#include "fungi/kernel/bfloat16.h"

namespace fungi {
namespace {

static_assert(std::endian::native == std::endian::little, "bits are read through bytes");

using kernel::bfloat16;

// ±1 for each bit of a byte, lowest first: eight entries by one copy.
template <class T>
struct SignTable {
  alignas(32) T entries[256][8];
  explicit SignTable(T plus, T minus) {
    for (size_t byte = 0; byte < 256; ++byte)
      for (size_t bit = 0; bit < 8; ++bit) entries[byte][bit] = byte >> bit & 1 ? plus : minus;
  }
  void expand(const uint8_t* bytes, size_t count, T* out) const {
    for (size_t j = 0; j + 8 <= count; j += 8)
      std::memcpy(out + j, entries[bytes[j / 8]], 8 * sizeof(T));
    if (const size_t rest = count % 8)
      std::memcpy(out + count - rest, entries[bytes[count / 8]], rest * sizeof(T));
  }
};

class SignRows : public ProjectionRows {
 public:
  explicit SignRows(size_t rows) : scale_(1 / std::sqrt(static_cast<double>(rows))) {}
  double scale() const override { return scale_; }

 protected:
  SignTable<float> floats_{1.0f, -1.0f};
  SignTable<bfloat16> bfloats_{to_bfloat16(1.0f), to_bfloat16(-1.0f)};

 private:
  double scale_;
};

class CounterSigns final : public SignRows {
 public:
  CounterSigns(uint64_t seed, size_t rows) : SignRows(rows), seed_(seed) {}
  void fill(size_t row, size_t begin, size_t count, float* out) const override {
    expand(row, begin, count, floats_, out);
  }
  void fill(size_t row, size_t begin, size_t count, bfloat16* out) const override {
    expand(row, begin, count, bfloats_, out);
  }

 private:
  template <class T>
  void expand(size_t row, size_t begin, size_t count, const SignTable<T>& table, T* out) const {
    constexpr size_t kWords = 64;
    uint64_t words[kWords];
    while (count > 0) {
      const size_t offset = begin % 64, some = std::min(count, kWords * 64 - offset);
      sign_words(seed_, "projection/sign", row, begin / 64, (offset + some + 63) / 64, words);
      table.expand(reinterpret_cast<const uint8_t*>(words) + offset / 8, some, out);
      begin += some, count -= some, out += some;
    }
  }
  uint64_t seed_;
};

// SPEC 1.5: drawn row by row from one Mersenne Twister; +1 where the 24-bit uniform exceeds one
// half.
class ReferenceSigns final : public SignRows {
 public:
  ReferenceSigns(uint32_t seed, size_t rows, size_t length)
      : SignRows(rows), bits_(rows, round_up(length, 64) / 8) {
    TorchRandom random(seed);
    for (size_t r = 0; r < rows; ++r)
      for (size_t j = 0; j < length; j += 8) {
        unsigned byte = 0;
        for (size_t bit = 0; bit < std::min<size_t>(8, length - j); ++bit)
          byte |= unsigned{(random.draw() & 0xFFFFFFu) > 0x800000u} << bit;
        bits_(r, j / 8) = static_cast<uint8_t>(byte);
      }
  }
  void fill(size_t row, size_t begin, size_t count, float* out) const override {
    floats_.expand(bits_.row(row) + begin / 8, count, out);
  }
  void fill(size_t row, size_t begin, size_t count, bfloat16* out) const override {
    bfloats_.expand(bits_.row(row) + begin / 8, count, out);
  }

 private:
  Matrix<uint8_t> bits_;
};

// Each entry is a value of a table, chosen by 16 random bits.
class TableRows final : public ProjectionRows {
 public:
  TableRows(uint64_t seed, std::string_view purpose, const std::vector<float>& values, double scale)
      : seed_(seed), purpose_(purpose), scale_(scale) {
    FUNGI_ASSERT(values.size() == 65536);
    for (const float value : values) values_.push_back(to_bfloat16(value));
  }
  void fill(size_t row, size_t begin, size_t count, float* out) const override {
    draw(row, begin, count, [&](size_t j, bfloat16 value) { out[j] = to_float(value); });
  }
  void fill(size_t row, size_t begin, size_t count, bfloat16* out) const override {
    draw(row, begin, count, [&](size_t j, bfloat16 value) { out[j] = value; });
  }
  double scale() const override { return scale_; }

 private:
  template <class Put>
  void draw(size_t row, size_t begin, size_t count, Put&& put) const {
    const RandomStream stream(seed_, purpose_, row);
    for (size_t j = 0; j < count; j += 4) {
      const uint64_t bits = stream.bits((begin + j) / 4);
      for (size_t lane = 0; lane < std::min<size_t>(4, count - j); ++lane)
        put(j + lane, values_[bits >> (16 * lane) & 0xFFFF]);
    }
  }
  uint64_t seed_;
  std::string purpose_;
  std::vector<bfloat16> values_;
  double scale_;
};

// The quantiles of N(0,1) in the middles of 65536 equally likely intervals, brought to variance 1.
std::vector<float> gaussian_values() {
  constexpr size_t n = 65536;
  std::vector<double> quantile(n);
  double x = 0, square = 0;
  for (size_t i = n / 2; i < n; ++i) {
    const double tail = (static_cast<double>(n - i) - 0.5) / n;  // P(X > x)
    for (int step = 0; step < 60; ++step) {  // Newton, from the left: converges monotonically
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      const double change = (0.5 * std::erfc(x / std::numbers::sqrt2) - tail) / density;
      x += change;
      if (std::abs(change) < 1e-12) break;
    }
    quantile[i] = x, quantile[n - 1 - i] = -x;
    square += 2 * x * x / n;
  }
  std::vector<float> values;
  for (const double q : quantile) values.push_back(static_cast<float>(q / std::sqrt(square)));
  return values;
}

// +1, -1 and 0 with probabilities 1/6, 1/6 and 2/3; the √3 is part of the scale.
std::vector<float> sparse_values() {
  std::vector<float> values(65536, 0.0f);
  constexpr size_t kSixth = 65536 / 6 + 1;
  std::fill_n(values.begin(), kSixth, 1.0f);
  std::fill_n(values.begin() + kSixth, kSixth, -1.0f);
  return values;
}

class MatrixRows final : public ProjectionRows {
 public:
  explicit MatrixRows(Matrix<float> matrix) : matrix_(std::move(matrix)) {}
  void fill(size_t row, size_t begin, size_t count, float* out) const override {
    std::copy_n(matrix_.row(row) + begin, count, out);
  }
  void fill(size_t row, size_t begin, size_t count, bfloat16* out) const override {
    for (size_t j = 0; j < count; ++j) out[j] = to_bfloat16(matrix_(row, begin + j));
  }
  double scale() const override { return 1; }

 private:
  Matrix<float> matrix_;
};

}  // namespace

void sign_words(uint64_t seed, std::string_view purpose, size_t row, size_t first_word,
                size_t count, uint64_t* words) {
  const RandomStream stream(seed, purpose, row);
  for (size_t i = 0; i < count; ++i) words[i] = stream.bits(first_word + i);
}

std::unique_ptr<ProjectionRows> make_projection_rows(ProjectionOptions options,
                                                     size_t gradient_length) {
  const double scale = 1 / std::sqrt(static_cast<double>(options.rows));
  switch (options.kind) {
    case ProjectionKind::sign:
      return std::make_unique<CounterSigns>(options.seed, options.rows);
    case ProjectionKind::sign_reference:
      return std::make_unique<ReferenceSigns>(static_cast<uint32_t>(options.seed), options.rows,
                                              gradient_length);
    case ProjectionKind::gaussian:
      return std::make_unique<TableRows>(options.seed, "projection/gaussian", gaussian_values(),
                                         scale);
    case ProjectionKind::sparse:
      return std::make_unique<TableRows>(options.seed, "projection/sparse", sparse_values(),
                                         std::numbers::sqrt3 * scale);
    case ProjectionKind::matrix:
      return std::make_unique<MatrixRows>(std::move(options.matrix));
    default:
      break;
  }
  FUNGI_ASSERT(!"a dense kind");
  return nullptr;
}

}  // namespace fungi
