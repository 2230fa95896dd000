// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a text, through the small tokenizers of tests/golden/token. Run it
// in the root of the repository.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/token/tokenizer.h"

namespace {

std::vector<std::shared_ptr<const fungi::Tokenizer>> open_all() {
  std::vector<std::shared_ptr<const fungi::Tokenizer>> all;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/token"))
    if (std::filesystem::exists(entry.path() / "tokenizer.json"))
      all.push_back(fungi::Tokenizer::open(entry.path()));
  if (all.empty()) std::abort();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizers = open_all();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& tokenizer : tokenizers) try {
      const fungi::Tokens tokens = tokenizer->encode(text, 64);
      if (tokens.ids.size() > 64) std::abort();
      for (const int32_t id : tokens.ids)
        if (id < 0 || size_t(id) >= tokenizer->vocabulary_size()) std::abort();
    } catch (const fungi::Error&) {
    }
  return 0;
}
