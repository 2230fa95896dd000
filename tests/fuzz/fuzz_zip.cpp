// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a zip archive (.pth or .npz).
#include "tests/fuzz/read_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) fungi::read_everything(fungi::open_zip, data, size);
  return 0;
}
