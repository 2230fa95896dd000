// SPDX-License-Identifier: Apache-2.0
// Writing .npz as a stream: entries are stored, not packed, under a fixed date, so that equal
// arrays give equal bytes. All sizes are in the 64-bit form of zip, which numpy uses, too. An
// entry's size and checksum stand before its data and are known only after it: they are filled in
// then.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/checkpoint/npy_header.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr uint32_t kIn64 = 0xffffffff;  // "see the 64-bit field"
constexpr uint16_t kVersion = 45;       // the first one with such fields
constexpr uint16_t kUtf8Names = 1 << 11, kStored = 0, kMidnight = 0;
constexpr uint16_t kFirstOf1980 = (1 << 5) | 1;     // the earliest date a zip can say
constexpr uint64_t kChecksumAt = 14, kNameAt = 30;  // in an entry's head

struct Record {
  std::string bytes;

  template <class T>
  Record& put(T value) {  // little-endian
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<char>(uint64_t{value} >> (8 * i) & 0xff));
    return *this;
  }
  template <class T, class... More>
  Record& put(T value, More... more) {
    return put(value).put(more...);
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes)); }
};

}  // namespace

struct NpzWriter::State {
  struct Entry {
    std::string name, npy_header;
    uint64_t head = 0, size = 0;  // where it begins; bytes of data
    uint32_t checksum = 0;
  };
  explicit State(const std::filesystem::path& path) : file(path), place(path.string()) {}

  AtomicFile file;
  std::string place;
  uint64_t position = 0;
  std::vector<Entry> entries;

  void write(std::span<const std::byte> bytes) {
    file.write(bytes);
    position += bytes.size();
  }
  void end_entry() {
    if (entries.empty()) return;
    const Entry& e = entries.back();
    parse_npy_header(e.npy_header, e.size, place + ": " + e.name);  // as many bytes as it says?
    file.write_at(e.head + kChecksumAt, Record{}.put(e.checksum).span());
    file.write_at(e.head + kNameAt + e.name.size() + 4, Record{}.put(e.size, e.size).span());
  }
};

NpzWriter::NpzWriter(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
NpzWriter::~NpzWriter() = default;

void NpzWriter::begin(const std::string& name, const std::string& descr,
                      const std::vector<size_t>& shape) {
  State& s = *state_;
  s.end_entry();
  const std::string file_name = name + ".npy", header = npy_header(descr, shape);
  if (file_name.size() > std::numeric_limits<uint16_t>::max() || name.empty() ||
      std::any_of(s.entries.begin(), s.entries.end(),
                  [&](const auto& e) { return e.name == file_name; }))
    fail(fmt::format("an array cannot be named '{}': empty, too long, or there already",
                     printable(name)),
         s.place, "give every array a name of its own");
  s.entries.push_back({file_name, header, s.position, 0, 0});
  Record head;
  head.put(uint32_t{0x04034b50}, kVersion, kUtf8Names, kStored, kMidnight, kFirstOf1980,
           uint32_t{0}, kIn64, kIn64, static_cast<uint16_t>(file_name.size()), uint16_t{20});
  head.bytes += file_name;
  head.put(uint16_t{1}, uint16_t{16}, uint64_t{0}, uint64_t{0});
  s.write(head.span());
  append(std::as_bytes(std::span(header)));
}

void NpzWriter::append(std::span<const std::byte> bytes) {
  FUNGI_ASSERT(!state_->entries.empty());
  if (bytes.empty()) return;  // zlib takes a null pointer for a new beginning
  State::Entry& e = state_->entries.back();
  e.size += bytes.size();
  e.checksum = static_cast<uint32_t>(
      crc32_z(e.checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  state_->write(bytes);
}

void NpzWriter::finish() {
  State& s = *state_;
  s.end_entry();
  const uint64_t directory = s.position, count = s.entries.size();
  for (const State::Entry& e : s.entries) {
    Record entry;
    entry.put(uint32_t{0x02014b50}, kVersion, kVersion, kUtf8Names, kStored, kMidnight,
              kFirstOf1980, e.checksum, kIn64, kIn64, static_cast<uint16_t>(e.name.size()),
              uint16_t{28});
    entry.put(uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, kIn64);
    entry.bytes += e.name;
    entry.put(uint16_t{1}, uint16_t{24}, e.size, e.size, e.head);
    s.write(entry.span());
  }
  const uint64_t end = s.position;
  Record tail;
  tail.put(uint32_t{0x06064b50}, uint64_t{44}, kVersion, kVersion, uint32_t{0}, uint32_t{0}, count,
           count, end - directory, directory);
  tail.put(uint32_t{0x07064b50}, uint32_t{0}, end, uint32_t{1});
  const auto short_count = static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  tail.put(uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, short_count, short_count, kIn64, kIn64,
           uint16_t{0});
  s.write(tail.span());
  s.file.finish();
}

void write_npz(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, NpyArray>>& arrays) {
  NpzWriter writer(path);
  for (const auto& [name, array] : arrays) {
    writer.begin(name, array.descr, array.shape);
    writer.append(array.bytes);
  }
  writer.finish();
}

}  // namespace fungi
