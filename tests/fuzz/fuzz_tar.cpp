// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a tar archive of samples, compressed or not; every member is read.
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/fuzz/open_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fungi::open_bytes("shard.tar", {.kind = fungi::DatasetKind::tar}, true, data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t largest);

// Headers get the sum that they should have: with a wrong one nothing behind them would be read.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t largest, unsigned) {
  constexpr size_t kBlock = 512, kSum = 148, kSumLength = 8, kMagic = 257;
  size = LLVMFuzzerMutate(data, size, largest);
  for (size_t at = 0; at + kBlock <= size; at += kBlock) {
    uint8_t* block = data + at;
    if (std::memcmp(block + kMagic, "ustar", 5) != 0) continue;
    std::fill_n(block + kSum, kSumLength, uint8_t(' '));
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += block[i];
    for (size_t digit = 6; digit-- > 0; sum /= 8) block[kSum + digit] = uint8_t('0' + sum % 8);
    block[kSum + 6] = 0;
  }
  return size;
}
