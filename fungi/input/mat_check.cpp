// SPDX-License-Identifier: Apache-2.0
// MATLAB files as strangers make them: libmatio calls itself for each array in an array, so that
// deep nesting ends the process, makes as many cells as a file says, and unpacks without a limit.
// All that is looked at before.
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>

#include "fungi/base/error.h"
#include "fungi/input/mat_file.h"

namespace fungi::dataset {
namespace {

constexpr size_t kHead = 128;
constexpr int kMostDepth = 16;  // published lists have structures with arrays of numbers: 2
constexpr uint64_t kMostUnpacked = uint64_t{64} << 20;  // of all variables; lists have 2 MB
constexpr uint32_t kSides = 5, kMatrix = 14, kCompressed = 15;
constexpr uint64_t kMostElements = uint64_t{1} << 22;

struct Checker {
  const std::string& place;
  bool swapped = false;  // written by a machine of the other byte order
  uint64_t left = kMostUnpacked;

  [[noreturn]] void broken(const std::string& message) const {
    fail(message, place, "unpack the archive of the data set again");
  }

  uint32_t word(std::span<const uint8_t> bytes, size_t at) const {
    uint32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return swapped ? __builtin_bswap32(value) : value;
  }

  // An element is its type, its size and its bytes, filled up to eight of them; a small one has
  // its size in the upper half of the first word and up to four bytes in the second. An array is
  // an element of elements.
  void elements(std::span<const uint8_t> bytes, int depth) {
    while (bytes.size() >= 8) {
      const uint32_t type = word(bytes, 0);
      if (type >> 16 != 0) {
        bytes = bytes.subspan(8);
        continue;
      }
      const size_t size = word(bytes, 4);
      if (size > bytes.size() - 8)
        broken(fmt::format("expected {} more bytes of an array, found {}", size,
                           bytes.size() - 8));
      const std::span<const uint8_t> inside = bytes.subspan(8, size);
      if (type == kMatrix) {
        if (depth == kMostDepth)
          broken(fmt::format("arrays stand in one another more than {} deep", kMostDepth));
        check_sides(inside);
        elements(inside, depth + 1);
      } else if (type == kCompressed && depth == 0) {
        elements(unpacked(inside), depth + 1);  // nothing is packed twice
        bytes = bytes.subspan(8 + size);  // these are not filled up
        continue;
      }
      bytes = bytes.subspan(std::min(bytes.size(), 8 + (size + 7) / 8 * 8));
    }
  }

  // Of an array, behind its kind: libmatio makes as many cells as they say.
  void check_sides(std::span<const uint8_t> inside) const {
    constexpr size_t kKind = 16;
    if (inside.size() < kKind + 8 || word(inside, kKind) != kSides) return;
    uint64_t elements = 1;
    const size_t size = word(inside, kKind + 4), end = std::min(kKind + 8 + size, inside.size());
    for (size_t at = kKind + 8; at + 4 <= end; at += 4) {
      const uint32_t side = word(inside, at);
      if (side > kMostElements || (elements *= side) > kMostElements)
        broken(fmt::format("expected at most {} elements of an array, found more", kMostElements));
    }
  }

  std::vector<uint8_t> unpacked(std::span<const uint8_t> packed) {
    std::vector<uint8_t> out(std::min<uint64_t>(left, 4 * packed.size() + 4096));
    z_stream stream{};
    stream.next_in = const_cast<Bytef*>(packed.data());
    stream.avail_in = uInt(packed.size());
    if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
    int status = Z_OK;
    while (status == Z_OK) {
      if (stream.total_out == out.size()) {
        if (out.size() == left) break;
        out.resize(std::min<uint64_t>(left, 2 * out.size()));
      }
      stream.next_out = out.data() + stream.total_out;
      stream.avail_out = uInt(out.size() - stream.total_out);
      status = inflate(&stream, Z_NO_FLUSH);
    }
    const size_t size = stream.total_out;
    inflateEnd(&stream);
    if (status == Z_OK)
      broken(fmt::format("expected at most {} bytes unpacked, found more", kMostUnpacked));
    if (status != Z_STREAM_END) broken("a packed variable is damaged or cut off");
    left -= size;
    out.resize(size);
    return out;
  }
};

}  // namespace

void check_mat(std::span<const uint8_t> bytes, const std::string& place) {
  Checker checker{place};
  const std::string_view mark(
      reinterpret_cast<const char*>(bytes.data()) + (bytes.size() < kHead ? 0 : 126),
      bytes.size() < kHead ? 0 : 2);
  if (mark != "IM" && mark != "MI")
    checker.broken("expected a MATLAB file, version 5, found something else");
  checker.swapped = mark == "MI";
  const uint8_t version = bytes[checker.swapped ? 124 : 125];
  if (version != 1)
    fail(fmt::format("expected a MATLAB file, version 5, found version {}",
                     version == 2 ? "7.3" : std::to_string(version)),
         place, "fetch the file of the data set again, or save it with MATLAB's option -v7");
  checker.elements(bytes.subspan(kHead), 0);
}

}  // namespace fungi::dataset
