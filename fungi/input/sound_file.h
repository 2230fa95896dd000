// SPDX-License-Identifier: Apache-2.0
// One open file of sounds, read forwards. sndfile.cpp has it, or says that this build cannot.
// Internal to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace fungi::codec {

extern const bool kHaveSoundFiles;

class SoundFile {
 public:
  // The bytes must outlive it. Error where they are no sound of a format that is read.
  static SoundFile open(std::span<const uint8_t> bytes, std::string_view name);
  static SoundFile open(const std::filesystem::path& file);
  SoundFile(SoundFile&&) noexcept;
  ~SoundFile();

  double rate() const;
  size_t channels() const;
  uint64_t frames() const;  // as the header says; 0 where nothing does
  uint64_t slack() const;   // by how many it may be wrong of a whole file
  // Whether the header speaks of more than is there.
  bool is_cut_off() const;
  void seek(uint64_t frame);
  // Interleaved; how many frames were there. Error where they cannot be decoded.
  size_t read(float* out, size_t frames);

 private:
  struct State;
  explicit SoundFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fungi::codec
