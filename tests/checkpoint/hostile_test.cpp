// SPDX-License-Identifier: Apache-2.0
// Small real files, cut at every byte and changed at random: each variant must be read or refused
// with an Error, within little memory. The generator is the counter-based one, so a failure names
// its seed and can be repeated.
#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "support.h"
#include "tests/support/allocations.h"

namespace fungi {
namespace {

constexpr size_t kReasonable = size_t{65} << 20;  // an expanded tensor may have 2^24 elements

// Whether the variant was read; anything but success or an Error ends the test.
bool try_variant(std::string_view bytes) {
  if (bytes.empty()) return false;  // an empty file is refused before it is looked at
  try {
    read_all(bytes);
    return true;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return false;
  }
}

class Hostile : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { test::largest_request = 0; }
  void TearDown() override { EXPECT_LE(test::largest_request.load(), kReasonable); }
};

TEST_P(Hostile, CutAnywhere) {
  const std::string whole = read_file(golden(GetParam()));
  ASSERT_TRUE(try_variant(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    // Fresh memory of just that length, so that the sanitizer sees a read beyond it.
    const std::vector<char> part(whole.begin(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_FALSE(try_variant({part.data(), part.size()})) << "cut at byte " << length;
  }
}

TEST_P(Hostile, ChangedAnywhere) {
  const std::string whole = read_file(golden(GetParam()));
  constexpr uint64_t kVariants = 3000;
  for (uint64_t variant = 0; variant < kVariants; ++variant) {
    SCOPED_TRACE(variant);
    const RandomStream random(7, GetParam(), variant);
    std::string changed = whole;
    const uint64_t changes = 1 + random.bits(0) % 4;
    for (uint64_t i = 0; i < changes; ++i) {
      const size_t at = random.bits(4 * i + 1) % changed.size();
      const auto value = random.bits(4 * i + 2);
      switch (random.bits(4 * i + 3) % 5) {
        case 0:
          changed[at] = static_cast<char>(changed[at] ^ (1 << value % 8));
          break;
        case 1:
          changed[at] = static_cast<char>(value);
          break;
        case 2:
          changed[at] = static_cast<char>(value % 2 == 0 ? 0xFF : 0);
          break;
        case 3:
          changed.erase(at, 1 + value % 8);
          break;
        default:
          changed.insert(at, changed.substr(value % changed.size(), 1 + value % 32));
      }
      if (changed.empty()) break;
    }
    try_variant(changed);
    if (::testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Hostile,
                         ::testing::Values("types.safetensors", "views.pth",
                                           "containers_legacy.pth", "protocol1.pth",
                                           "protocol4_legacy.pth", "views_legacy.pth", "types.pth",
                                           "script.pt", "augreg_packed.npz"),
                         [](const auto& given) {
                           std::string name = given.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace fungi
