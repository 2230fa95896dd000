// SPDX-License-Identifier: Apache-2.0
// Names, sizes and conversion of element types, and the small methods of TensorInfo.
#include "fungi/checkpoint/tensor_type.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace fungi {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as little-endian bytes");

struct TypeFacts {
  const char* name;
  size_t size;
};

constexpr TypeFacts facts(DType type) {
  switch (type) {
    case DType::f32:
      return {"f32", 4};
    case DType::f16:
      return {"f16", 2};
    case DType::bf16:
      return {"bf16", 2};
    case DType::f64:
      return {"f64", 8};
    case DType::i64:
      return {"i64", 8};
    case DType::i32:
      return {"i32", 4};
    case DType::i16:
      return {"i16", 2};
    case DType::i8:
      return {"i8", 1};
    case DType::u8:
      return {"u8", 1};
    case DType::boolean:
      return {"bool", 1};
  }
  return {"unknown", 0};
}

// Without branches, so that the loop below becomes vector code; never touches a denormal f32 input.
inline float half_to_float(uint16_t half) {
  constexpr uint32_t kInfinity = 0x7C00u << 13;
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t magnitude = (half & 0x7FFFu) << 13;
  const uint32_t exponent = magnitude & kInfinity;
  uint32_t bits = magnitude + kRebias;
  bits += exponent == kInfinity ? kRebias : 0u;
  const float denormal = std::bit_cast<float>(magnitude + kRebias + (1u << 23)) - 0x1p-14f;
  bits = exponent == 0 ? std::bit_cast<uint32_t>(denormal) : bits;
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

template <class Stored, class Convert>
void convert(const std::byte* from, size_t count, float* to, Convert one) {
  for (size_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
    to[i] = one(value);
  }
}

}  // namespace

const char* to_string(DType type) { return facts(type).name; }
size_t size_of(DType type) { return facts(type).size; }

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

void to_floats(DType type, const std::byte* from, size_t count, float* to) {
  FUNGI_ASSERT(is_float(type));
  if (count == 0) return;
  switch (type) {
    case DType::f16:
      return convert<uint16_t>(from, count, to, half_to_float);
    case DType::bf16:
      return convert<uint16_t>(from, count, to, [](uint16_t bits) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
      });
    case DType::f64:
      return convert<double>(from, count, to,
                             [](double value) { return static_cast<float>(value); });
    default:
      std::memcpy(to, from, count * sizeof(float));
  }
}

std::optional<size_t> checked_add(size_t a, size_t b) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

std::optional<size_t> checked_multiply(size_t a, size_t b) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

size_t checked_count(const std::vector<size_t>& shape, const std::string& place) {
  size_t bytes =
      8;  // the widest element; counting zeros as ones keeps every partial product safe, too
  bool empty = false;
  for (size_t dimension : shape) {
    empty |= dimension == 0;
    const auto next = checked_multiply(bytes, std::max<size_t>(dimension, 1));
    if (!next)
      fail(fmt::format("shape {} has more elements than memory can hold", shape_text(shape)), place,
           kHostile);
    bytes = *next;
  }
  return empty ? 0 : bytes / 8;
}

std::string shape_text(const std::vector<size_t>& shape) {
  std::string text;
  for (size_t dimension : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(dimension);
  }
  return text.empty() ? "scalar" : text;
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string text(name.substr(0, kLongest));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return name.size() > kLongest ? text + "..." : text;
}

std::string tensor_place(const std::string& path, std::string_view name) {
  return fmt::format("{}: tensor '{}'", path, printable(name));
}

size_t TensorInfo::count() const {
  size_t product = 1;
  for (size_t dimension : shape) product *= dimension;
  return product;
}

std::string TensorInfo::shape_text() const { return fungi::shape_text(shape); }

}  // namespace fungi
