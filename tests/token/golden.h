// SPDX-License-Identifier: Apache-2.0
// The golden files of tests/golden/make_token.py.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace fungi::test {

inline nlohmann::json golden_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("missing golden file " + path.string());
  return nlohmann::json::parse(file);
}

inline std::filesystem::path token_golden() { return FUNGI_GOLDEN_DIR "/token"; }

// The nasty texts; some are written as a part and how often it stands there.
inline std::vector<std::string> nasty_texts() {
  std::vector<std::string> texts;
  for (const auto& entry : golden_json(token_golden() / "texts.json")) {
    std::string text;
    for (int i = 0; entry.is_array() && i < entry[1].get<int>(); ++i)
      text += entry[0].get<std::string>();
    texts.push_back(entry.is_array() ? text : entry.get<std::string>());
  }
  return texts;
}

// The sum of a text's ids: FNV-1a with an id in the place of a byte, and one more for the end.
class IdSum {
 public:
  void add(const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) mix(uint32_t(id));
    mix(~uint32_t(0));
  }
  uint64_t value() const { return value_; }

 private:
  void mix(uint32_t id) { value_ = (value_ ^ id) * 0x100000001b3; }
  uint64_t value_ = 0xcbf29ce484222325;
};

// Ids as the golden files have them: long lists as their number and sum.
inline nlohmann::json short_form(const std::vector<int32_t>& ids) {
  if (ids.size() <= 60) return ids;
  IdSum sum;
  sum.add(ids);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(sum.value()));
  return {ids.size(), hex};
}

}  // namespace fungi::test
