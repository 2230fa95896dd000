// SPDX-License-Identifier: Apache-2.0
// The test picture that tests/golden/make_input.py computes too, and small things the tests of this
// room share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/random.h"
#include "fungi/input/image.h"

namespace fungi::testing {

inline Image pattern(size_t width, size_t height, uint32_t seed) {
  Image image{width, height, {}};
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < 3; ++c) {
        uint32_t h = (x * 73856093u) ^ (y * 19349663u) ^ (c * 83492791u) ^ (seed * 2654435761u);
        h = (h ^ (h >> 13)) * 0x5bd1e995u;
        image.rgb.push_back(uint8_t((x * 5 + y * 3 + c * 40) % 192 + ((h >> 15) & 63)));
      }
  return image;
}

inline std::string checksum(const std::vector<uint8_t>& bytes) {
  const uint64_t hash = fnv1a64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

inline std::vector<uint8_t> from_hex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(uint8_t(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(std::filesystem::path(FUNGI_GOLDEN_DIR) / name);
  return nlohmann::json::parse(file);
}

inline std::vector<float> golden_floats(const std::string& name) {
  const auto bytes = read_file_bytes(std::filesystem::path(FUNGI_GOLDEN_DIR) / name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

inline std::vector<uint8_t> golden_image(const std::string& name) {
  return read_file_bytes(std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/images" / name);
}

// Bytes after changes: each is where, how many bytes are taken away, and in hex what is put there.
inline std::vector<uint8_t> edited(std::vector<uint8_t> bytes, const nlohmann::json& edits) {
  for (const auto& edit : edits) {
    const auto put = from_hex(edit[2].get<std::string>());
    const auto at = bytes.begin() + std::min(edit[0].get<ptrdiff_t>(), ptrdiff_t(bytes.size()));
    const auto rest = bytes.erase(at, at + std::min(edit[1].get<ptrdiff_t>(), bytes.end() - at));
    bytes.insert(rest, put.begin(), put.end());
  }
  return bytes;
}

// "WIDTHxHEIGHT sum" of the picture; null where it is refused.
inline nlohmann::json verdict(const std::vector<uint8_t>& bytes, const std::string& name,
                              const DecodeOptions& options) {
  try {
    const Image image = decode_image(bytes, name, options);
    return std::to_string(image.width) + "x" + std::to_string(image.height) + " " +
           checksum(image.rgb);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace fungi::testing
