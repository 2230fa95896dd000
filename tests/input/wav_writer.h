// SPDX-License-Identifier: Apache-2.0
// WAV files whose header may say anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fungi::test {

struct Wav {
  uint32_t rate = 16000;
  uint16_t channels = 1, bits = 16;
  std::optional<uint32_t> data_bytes = {};  // what the header says; nothing: the truth
};

// Samples of 16 bits, channels side by side.
inline std::vector<uint8_t> wav(const Wav& header, const std::vector<int16_t>& samples) {
  std::vector<uint8_t> out;
  const auto number = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out.push_back(uint8_t(value >> (8 * i)));
  };
  const auto text = [&](std::string_view word) { out.insert(out.end(), word.begin(), word.end()); };
  const uint32_t data = header.data_bytes.value_or(uint32_t(2 * samples.size()));
  const uint32_t frame = header.channels * uint32_t(header.bits / 8);
  text("RIFF"), number(data > 0xFFFFFF00 ? data : 36 + data, 4), text("WAVEfmt "), number(16, 4);
  number(1, 2), number(header.channels, 2), number(header.rate, 4);
  number(uint64_t(header.rate) * frame, 4), number(frame, 2), number(header.bits, 2);
  text("data"), number(data, 4);
  for (const int16_t sample : samples) number(uint16_t(sample), 2);
  return out;
}

}  // namespace fungi::test
