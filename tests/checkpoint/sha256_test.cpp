// SPDX-License-Identifier: Apache-2.0
// SHA-256 against the published vectors of FIPS 180-4, and whole against piecewise.
#include "fungi/checkpoint/sha256.h"

#include "support.h"

namespace fungi {
namespace {

std::string hash(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAndBothWaysGiveTheSameHash) {
  std::string text(300, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view whole(text.data(), length);
    for (size_t piece : {size_t{1}, size_t{13}, size_t{64}, size_t{65}}) {
      for (bool portable : {false, true}) {
        Sha256 pieces(portable);
        for (size_t at = 0; at < length; at += piece)
          pieces.add(std::as_bytes(std::span(whole.substr(at, piece))));
        ASSERT_EQ(pieces.hex(), hash(whole)) << length << " by " << piece;
      }
    }
  }
}

}  // namespace
}  // namespace fungi
