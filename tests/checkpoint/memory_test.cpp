// SPDX-License-Identifier: Apache-2.0
// Weights that a program holds are those of a file.
#include <cstring>

#include "fungi/checkpoint/checkpoint.h"
#include "support.h"

namespace fungi {
namespace {

MemoryTensor of(const std::string& name, std::vector<size_t> shape, std::span<const float> values) {
  return {{name, DType::f32, std::move(shape)}, std::as_bytes(values)};
}

TEST(Memory, IsReadAsAFileIs) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{7};
  const Checkpoint c =
      Checkpoint::of_memory("held", {of("b", {}, b), of("a", {3, 2}, a)}, {{"config.json", "{}"}});
  EXPECT_TRUE(c.in_memory());
  EXPECT_EQ(c.path(), "held");
  EXPECT_EQ(c.format(), "memory");
  ASSERT_EQ(c.tensors().size(), 2u);
  EXPECT_EQ(c.tensors()[0].name, "a");
  const Matrix<float> read = c.read("a");
  EXPECT_EQ(read.rows(), 3u);
  EXPECT_EQ(read(2, 1), 6.0f);
  EXPECT_EQ(c.read("b")(0, 0), 7.0f);
  EXPECT_EQ(c.beside("config.json"), "{}");
  EXPECT_EQ(c.beside("other.json"), "");
}

TEST(Memory, HalfPrecisionAtOddAddresses) {
  const uint16_t one = 0x3C00, two = 0x4000;
  std::vector<std::byte> bytes(5);
  std::memcpy(&bytes[1], &one, 2), std::memcpy(&bytes[3], &two, 2);
  const Checkpoint c =
      Checkpoint::of_memory("held", {{{"x", DType::f16, {2}}, std::span(bytes).subspan(1)}});
  EXPECT_EQ(c.read("x")(0, 1), 2.0f);
}

TEST(Memory, TheSumIsOfNamesShapesAndBytes) {
  const std::vector<float> a{1, 2}, b{1, 3};
  const auto sum = [](std::vector<MemoryTensor> tensors) {
    return Checkpoint::of_memory("held", std::move(tensors)).sha256();
  };
  const std::string first = sum({of("a", {2}, a)});
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(first, sum({of("a", {2}, a)}));
  EXPECT_NE(first, sum({of("a", {2}, b)}));
  EXPECT_NE(first, sum({of("b", {2}, a)}));
  EXPECT_NE(first, sum({of("a", {1, 2}, a)}));
  EXPECT_EQ(sum({of("a", {2}, a), of("b", {2}, b)}), sum({of("b", {2}, b), of("a", {2}, a)}));
}

TEST(Memory, RefusesWhatDoesNotFit) {
  const std::vector<float> a{1, 2};
  const auto refusal = [](std::vector<MemoryTensor> tensors) {
    return error_of([&] { Checkpoint::of_memory("held", tensors); });
  };
  EXPECT_CONTAINS(refusal({of("a", {3}, a)}), "expected 12 bytes");
  EXPECT_CONTAINS(refusal({of("a", {size_t{1} << 62, 8}, a)}), "held: tensor 'a'");
  EXPECT_CONTAINS(refusal({of("a", {2}, a), of("a", {2}, a)}), "occurs twice");
  EXPECT_CONTAINS(refusal({}), "holds no tensor");
}

}  // namespace
}  // namespace fungi
