// SPDX-License-Identifier: Apache-2.0
// Zip archives and legacy PyTorch files put together byte by byte, so that tests can lie anywhere
// in them.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "support.h"

namespace fungi {

struct TestEntry {
  std::string name, stored;  // stored: the bytes as they lie in the archive
  uint16_t method = 0;       // 0 stored, 8 deflated
  uint32_t size = 0;         // of the unpacked bytes, as declared
  uint32_t crc = 0;
  uint16_t flags = 0;
};

inline uint32_t crc_of(const std::string& bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

inline TestEntry stored(std::string name, const std::string& bytes) {
  return {std::move(name), bytes, 0, static_cast<uint32_t>(bytes.size()), crc_of(bytes), 0};
}

inline TestEntry deflated(std::string name, const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return {std::move(name), packed, 8, static_cast<uint32_t>(bytes.size()), crc_of(bytes), 0};
}

inline std::string zip(const std::vector<TestEntry>& entries) {
  const auto common = [](const TestEntry& entry) {
    return raw(uint16_t{20}) + raw(entry.flags) + raw(entry.method) + raw(uint16_t{0}) +
           raw(uint16_t{33}) + raw(entry.crc) + raw(static_cast<uint32_t>(entry.stored.size())) +
           raw(entry.size) + raw(static_cast<uint16_t>(entry.name.size())) + raw(uint16_t{0});
  };
  std::string bytes, directory;
  for (const TestEntry& entry : entries) {
    directory += "PK\x01\x02" + raw(uint16_t{20}) + common(entry) + std::string(10, '\0') +
                 raw(static_cast<uint32_t>(bytes.size())) + entry.name;
    bytes += "PK\x03\x04" + common(entry) + entry.name + entry.stored;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  return bytes + directory + "PK\x05\x06" + std::string(4, '\0') + raw(count) + raw(count) +
         raw(static_cast<uint32_t>(directory.size())) + raw(static_cast<uint32_t>(bytes.size())) +
         std::string(2, '\0');
}

// Pickled pieces, protocol 2.
inline std::string text(const std::string& value) {
  return join("X", raw(static_cast<uint32_t>(value.size())), value);
}
inline std::string integer(int32_t value) { return join("J", raw(value)); }
inline std::string numbers(const std::vector<int32_t>& values) {
  std::string list = "(";
  for (int32_t value : values) list += integer(value);
  return list + "t";
}
inline std::string storage(const std::string& key, int32_t count) {
  return join("(", text("storage"), "ctorch\nFloatStorage\n", text(key), text("cpu"),
              integer(count), "tQ");
}
inline std::string tensor_pickle(const std::string& from, int32_t offset,
                                 const std::vector<int32_t>& shape,
                                 const std::vector<int32_t>& strides,
                                 const std::string& metadata = "") {
  return join("ctorch._utils\n_rebuild_tensor_v2\n(", from, integer(offset), numbers(shape),
              numbers(strides), "\x89", "ccollections\nOrderedDict\n)R", metadata, "tR");
}
// {"w": value}
inline std::string dict(const std::string& value) { return "\x80\x02}" + text("w") + value + "s."; }

inline std::string legacy(const std::string& object, const std::vector<std::string>& keys = {},
                          const std::string& storages = "") {
  std::string list = "\x80\x02](";
  for (const std::string& key : keys) list += text(key);
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}." +
         object + list + "e." + storages;
}

inline std::string pth(const std::string& object, const std::vector<TestEntry>& storages = {}) {
  std::vector<TestEntry> entries{stored("archive/data.pkl", object)};
  entries.insert(entries.end(), storages.begin(), storages.end());
  return zip(entries);
}

}  // namespace fungi
