// SPDX-License-Identifier: Apache-2.0
// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } without a Python, and checks
// it.
#include "fungi/checkpoint/npy_header.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr const char* kWriteAgain = "write it again with numpy.save or numpy.savez";

class DictReader {
 public:
  DictReader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  void read(NpyHeader& header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (peek() != '}') {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        read_type(header);
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran_order = truth();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        wrong(fmt::format("has the field '{}', which is unknown or there twice", printable(key)));
      }
      if (peek() != '}') expect(',');
    }
    expect('}');
    if (peek() != '\0') wrong("goes on after its dict");
    if (!descr || !order || !shape) wrong("needs descr, fortran_order and shape");
  }

 private:
  [[noreturn]] void wrong(const std::string& why) const {
    fail(fmt::format("its .npy header {}", why), place_, kWriteAgain);
  }
  char peek() {
    while (!text_.empty() &&
           (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  void expect(char wanted) {
    if (peek() != wanted) wrong(fmt::format("misses '{}'", wanted));
    text_.remove_prefix(1);
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong("has something else than one quoted text");
    const size_t end = text_.find(quote, 1);
    if (end == text_.npos) wrong("has a text without end");
    std::string inside(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool truth() {
    peek();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(std::strlen(word));
      return value;
    }
    wrong("needs True or False as fortran_order");
  }
  std::vector<size_t> tuple() {
    std::vector<size_t> numbers;
    expect('(');
    while (peek() != ')') {
      size_t number = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc() || numbers.size() == kMostDimensions)
        wrong("has an impossible shape");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      if (peek() == 'L') text_.remove_prefix(1);  // Python 2
      numbers.push_back(number);
      if (peek() != ')') expect(',');
    }
    expect(')');
    return numbers;
  }
  // '<f4': order, kind, bytes.
  void read_type(NpyHeader& header) {
    if (peek() == '[') wrong("describes records; plain arrays can be read");
    const std::string descr = quoted();
    header.descr = descr;
    const char order = descr.empty() ? ' ' : descr[0];
    size_t size = 0;
    if (descr.size() >= 3) std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
    header.kind = descr.size() >= 2 ? descr[1] : ' ';
    header.item_size = header.kind == 'U' ? 4 * size : size;  // texts count characters
    if (header.kind == 'O') return;  // a pickle follows; the caller decides, nobody reads it
    if (order == '>' && size > 1)
      wrong(
          fmt::format("has the big-endian type '{}'; little-endian can be read", printable(descr)));
    if ((order != '<' && order != '|' && order != '=' && order != '>') || size == 0 ||
        size > (1u << 20))
      wrong(fmt::format("has the unknown type '{}'", printable(descr)));
  }

  std::string_view text_;
  const std::string& place_;
};

}  // namespace

std::optional<DType> NpyHeader::type() const {
  switch (kind) {
    case 'f':
      if (item_size == 2) return DType::f16;
      if (item_size == 4) return DType::f32;
      if (item_size == 8) return DType::f64;
      break;
    case 'i':
      if (item_size == 1) return DType::i8;
      if (item_size == 2) return DType::i16;
      if (item_size == 4) return DType::i32;
      if (item_size == 8) return DType::i64;
      break;
    case 'u':
      if (item_size == 1) return DType::u8;
      break;
    case 'b':
      if (item_size == 1) return DType::boolean;
      break;
    case 'V':
      if (item_size == 2) return DType::bf16;
      break;
    default:
      break;
  }
  return std::nullopt;
}

Strided NpyHeader::layout() const {
  Strided strided{*type(), shape, std::vector<size_t>(shape.size()), 0};
  size_t step = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t at = fortran_order ? i : shape.size() - 1 - i;
    strided.strides[at] = step;
    step *= shape[at];
  }
  return strided;
}

NpyHeader parse_npy_header(std::string_view start, size_t total, const std::string& place) {
  if (!start.starts_with("\x93NUMPY") || start.size() < 12)
    fail("is no .npy array", place, kWriteAgain);
  const int version = start[6];
  if (version < 1 || version > 3)
    fail(fmt::format("has .npy version {}; 1 to 3 can be read", version), place, kWriteAgain);
  const size_t width = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, width);
  if (length > kLongestNpyHeader - 12 || length > start.size() - 8 - width)
    fail(fmt::format("its .npy header should be {} bytes long, which cannot be", length), place,
         kWriteAgain);
  NpyHeader header;
  DictReader(start.substr(8 + width, length), place).read(header);
  header.data_offset = 8 + width + length;
  if (header.kind == 'O') return header;
  const auto bytes = checked_multiply(checked_count(header.shape, place), header.item_size);
  if (!bytes || *bytes != total - header.data_offset)
    fail(fmt::format("shape {} of '{}' does not fit the {} bytes that follow the header",
                     shape_text(header.shape), printable(header.descr), total - header.data_offset),
         place, "the file is damaged or incomplete: write or fetch it again");
  return header;
}

}  // namespace fungi
