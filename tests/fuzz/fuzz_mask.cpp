// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a mask. What was read is written and read again as the same.
#include <cstdlib>

#include "fungi/base/error.h"
#include "fungi/input/mask.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const fungi::Mask mask = fungi::decode_mask({data, size}, "fuzz");
    if (mask.width * mask.height != mask.values.size() || mask.values.empty()) std::abort();
    const fungi::Mask again = fungi::decode_mask(fungi::encode_mask(mask), "again");
    if (again.width != mask.width || again.values != mask.values) std::abort();
  } catch (const fungi::Error&) {
  }
  return 0;
}
