// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a pickle, and as a legacy PyTorch file.
#include <string_view>

#include "fungi/checkpoint/pickle.h"
#include "tests/fuzz/read_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    fungi::unpickle({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const fungi::Error&) {
  }
  if (size > 0) fungi::read_everything(fungi::open_pytorch_legacy, data, size);
  return 0;
}
