// SPDX-License-Identifier: Apache-2.0
// GIF, its first frame on the canvas: transparent places have the colour that their index names.
// Read here and not by giflib, which refuses other broken files than Pillow: that passes over the
// ends of blocks, and whether a picture that ends early is refused depends on the 64 KiB that it
// reads at a time.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

using Bytes = std::span<const uint8_t>;

struct Place {
  size_t left = 0, top = 0, width = 0, height = 0;
};

struct Palette {
  Bytes colours;       // RGB triples
  bool greys = false;  // it says no more than the indices do
};

struct Frame {
  size_t width = 0, height = 0;  // of the canvas, which grows with its first frame
  Place place;
  bool interlaced = false;
  int transparent = -1;
  std::array<uint8_t, 768> table{};
  unsigned bits = 0;  // of an index
  Bytes pixels;       // blocks of codes, and whatever follows
};

// Takes the file apart up to the first frame.
class Parser {
 public:
  Parser(Bytes file, std::string_view name) : rest_(file), size_(file.size()), name_(name) {}

  Frame first_frame() {
    Frame frame;
    const Bytes screen = take(13);
    frame.width = word(screen, 6);
    frame.height = word(screen, 8);
    Palette palette{{}, true};
    if (screen[10] & 0x80) palette = read_palette(screen[10]);
    for (;;) {
      const uint8_t kind = take(1)[0];
      if (kind == ';') fail_corrupt("GIF", name_, "it holds no picture");
      if (kind == '!') skip_extension(frame);
      if (kind == ',') break;
    }
    const Bytes head = take(9);
    frame.place = {word(head, 0), word(head, 2), word(head, 4), word(head, 6)};
    frame.width = std::max(frame.width, frame.place.left + frame.place.width);
    frame.height = std::max(frame.height, frame.place.top + frame.place.height);
    frame.interlaced = head[8] & 0x40;
    if (head[8] & 0x80) palette = read_palette(head[8]);
    for (size_t i = 0; i < 256 && palette.greys; ++i) std::memset(&frame.table[3 * i], int(i), 3);
    if (!palette.greys)
      std::copy_n(palette.colours.begin(), palette.colours.size() / 3 * 3, frame.table.begin());
    frame.bits = take(1)[0];
    frame.pixels = rest_;
    return frame;
  }

 private:
  static size_t word(Bytes bytes, size_t at) { return bytes[at] | size_t(bytes[at + 1]) << 8; }

  [[noreturn]] void end() {
    fail_truncated("GIF", name_, "the " + std::to_string(size_) + " bytes end within the header");
  }
  Bytes take(size_t count) {
    if (rest_.size() < count) end();
    return take_what_is_there(count);
  }
  Bytes take_what_is_there(size_t count) {
    const Bytes taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  Bytes block() {  // empty: the last one
    const Bytes length = take_what_is_there(1);
    return length.empty() ? length : take_what_is_there(length[0]);
  }

  // Of a palette that is cut off, Pillow takes what there is, unless that tells no colour yet.
  Palette read_palette(uint8_t flags) {
    Palette palette{take_what_is_there(size_t(6) << (flags & 7)), true};
    const Bytes& p = palette.colours;
    for (size_t i = 0; i < p.size() && palette.greys; i += 3) {
      const auto differs = [&](size_t at) {
        if (at >= p.size()) end();
        return p[at] != i / 3;
      };
      palette.greys = !(differs(i) || differs(i + 1) || differs(i + 2));
    }
    return palette;
  }

  void skip_extension(Frame& frame) {
    constexpr uint8_t kControl = 0xF9, kComment = 0xFE, kApplication = 0xFF;
    const uint8_t label = take(1)[0];
    Bytes data = block();
    if (label == kControl && !data.empty()) {
      if (data.size() < (data[0] & 1 ? 4u : 3u)) end();
      if (data[0] & 1) frame.transparent = data[3];
    }
    if (label == kComment) {  // its first block may be its last
      while (!data.empty()) data = block();
      return;
    }
    constexpr std::string_view kLoop = "NETSCAPE2.0";
    if (label == kApplication && data.size() >= kLoop.size() &&
        std::memcmp(data.data(), kLoop.data(), kLoop.size()) == 0)
      block();
    while (!block().empty()) {
    }
  }

  Bytes rest_;
  size_t size_;
  std::string_view name_;
};

// The blocks of codes as bytes. Pillow's decoder gets 64 KiB at a time and waits for whole blocks.
class Codes {
 public:
  explicit Codes(Bytes data) : data_(data) {}

  // The next so many bits; false where the bytes end.
  bool read(unsigned bits, unsigned& code) {
    while (count_ < bits) {
      if (left_ == 0) {
        while (at_ >= at_hand_ || at_ + 1 + data_[at_] > at_hand_)
          if (!more()) return false;
        left_ = data_[at_++];
        continue;
      }
      buffer_ |= uint32_t(data_[at_++]) << count_;
      --left_;
      count_ += 8;
    }
    code = buffer_ & ((1u << bits) - 1);
    buffer_ >>= bits;
    count_ -= bits;
    return true;
  }

  bool more() {
    const size_t before = at_hand_;
    at_hand_ = std::min(data_.size(), at_hand_ + (size_t(1) << 16));
    return at_hand_ > before;
  }

 private:
  Bytes data_;
  size_t at_ = 0, at_hand_ = 0, left_ = 0;
  uint32_t buffer_ = 0;
  unsigned count_ = 0;
};

// Where the next pixel goes: row by row, or every eighth row, those between, and so on.
class Rows {
 public:
  Rows(const Frame& frame, Image& image)
      : frame_(frame), image_(image), pass_(frame.interlaced), step_(frame.interlaced ? 8 : 1) {}

  bool put(uint8_t index) {  // false: that was the last one
    const Place& p = frame_.place;
    const size_t at = (p.top + y_) * image_.width + p.left + x_;
    std::memcpy(&image_.rgb[3 * at], &frame_.table[3 * index], 3);
    if (++x_ < p.width) return true;
    x_ = 0;
    y_ += step_;
    while (y_ >= p.height) {
      if (pass_ == 0) return false;
      y_ = size_t(8) >> pass_;
      step_ = pass_ == 1 ? 8 : 2 * y_;
      pass_ = pass_ == 3 ? 0 : pass_ + 1;
    }
    return true;
  }

 private:
  const Frame& frame_;
  Image& image_;
  unsigned pass_;
  size_t step_, x_ = 0, y_ = 0;
};

enum class Outcome { complete, broken, ran_out };

// LZW as Pillow reads it: nothing is added to a full table, and after the code for the end it goes
// on if there is more to read.
Outcome decode(Codes codes, Rows rows, const unsigned bits) {
  constexpr unsigned kTable = 4096;
  if (bits > 12) return Outcome::broken;
  const unsigned clear = 1u << bits, end = clear + 1;
  std::array<uint8_t, kTable> last{};    // of a code's string, its last index,
  std::array<uint16_t, kTable> front{};  // and the code of what stands in front of it
  std::array<uint8_t, kTable> string;
  unsigned next = 0, size = bits + 1, previous = 0;
  uint8_t first = 0;  // of the previous string
  bool cleared = true;
  for (;;) {
    if (cleared) {
      next = clear + 2;
      size = bits + 1;
    }
    unsigned code = 0;
    if (!codes.read(size, code)) return Outcome::ran_out;
    if (code == clear) {
      cleared = true;
      continue;
    }
    if (code == end) {
      if (!codes.more()) return Outcome::ran_out;
      continue;
    }
    if (cleared) {
      if (code > clear) return Outcome::broken;
      cleared = false;
      previous = code;
      first = uint8_t(code);
      if (!rows.put(first)) return Outcome::complete;
      continue;
    }
    if (code > next) return Outcome::broken;
    size_t begin = kTable;
    unsigned at = code;
    if (code == next) {  // the string that is about to be added
      string[--begin] = first;
      at = previous;
    }
    for (; at >= clear; at = front[at]) {
      if (begin == 0 || at >= kTable) return Outcome::broken;
      string[--begin] = last[at];
    }
    first = uint8_t(at);
    if (next < kTable) {
      last[next] = first;
      front[next] = uint16_t(previous);
      if (next == (1u << size) - 1 && size < 12) ++size;
      ++next;
    }
    previous = code;
    if (!rows.put(first)) return Outcome::complete;
    for (; begin < kTable; ++begin)
      if (!rows.put(string[begin])) return Outcome::complete;
  }
}

}  // namespace

Decoded decode_gif(Bytes file, std::string_view name, const DecodeOptions& options) {
  const Frame frame = Parser(file, name).first_frame();
  Decoded out{allocate(frame.width, frame.height, name, options), 1};
  Image& image = out.image;
  if (frame.place.width == 0 || frame.place.height == 0)
    fail_corrupt("GIF", name, "its first frame is empty");
  const uint8_t* background = &frame.table[3 * size_t(std::max(frame.transparent, 0))];
  for (size_t i = 0; i < image.rgb.size(); i += 3) std::memcpy(&image.rgb[i], background, 3);
  const Outcome outcome = decode(Codes(frame.pixels), Rows(frame, image), frame.bits);
  if (options.allow_truncated || outcome == Outcome::complete) return out;
  if (outcome == Outcome::broken) fail_corrupt("GIF", name, "its stream of codes is broken");
  fail_truncated("GIF", name,
                 "the " + std::to_string(file.size()) + " bytes end before the last row", true);
}

}  // namespace fungi::codec
