// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as tokenizer.json, then a few texts through what it makes.
#include <cstdint>
#include <cstdlib>

#include "fungi/base/error.h"
#include "fungi/token/tokenizer.h"
#include "tests/support/folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fungi::test::TemporaryFolder folder(fungi::test::place_in_memory());
  const auto path = folder.write("tokenizer.json", {reinterpret_cast<const char*>(data), size});
  try {
    const auto tokenizer = fungi::Tokenizer::open(path);
    for (const char* text :
         {"", "The cat's 3 caf\u00E9s  [MASK]\n", "\u4E2D \u0E33 e\u0301 \u00AD"}) {
      try {
        for (const int32_t id : tokenizer->encode(text).ids)
          if (id < 0 || size_t(id) >= tokenizer->vocabulary_size()) std::abort();
      } catch (const fungi::Error&) {
      }
    }
  } catch (const fungi::Error&) {
  }
  return 0;
}
