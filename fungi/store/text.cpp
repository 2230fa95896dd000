// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/utf8.h"

namespace fungi::store {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// Inside a Json value a raw byte is NUL and two hex digits: NUL cannot stand in a file name, and a
// JSON library spells it \u0000, which dump() and parse() exchange for \udc and back.
std::string to_json_string(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = bytes[i] == '\0' ? 0 : utf8_length(bytes.substr(i));
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(bytes[i++]);
      text += '\0';
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text.append(bytes, i, length);
      i += length;
    }
  }
  return text;
}

std::u32string to_code_points(std::string_view bytes) {
  std::u32string characters;
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(i));
    auto byte = [&](size_t k) { return static_cast<unsigned char>(bytes[i + k]); };
    if (length <= 1) {
      characters += length == 1 ? byte(0) : char32_t{0xDC00} + byte(0);
      ++i;
      continue;
    }
    char32_t value = byte(0) & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) value = value << 6 | (byte(k) & 0x3Fu);
    characters += value;
    i += length;
  }
  return characters;
}

std::string from_json_string(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\0' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                        hex_digit(text[i + 2]) >= 0;
    if (escape) {
      bytes += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

namespace {

// Exchanges the start of one escape for another, looking only at real escapes: not behind an
// escaped backslash, and not at the second half of a surrogate pair.
std::string exchange(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      out += text[i++];
    } else if (text.substr(i).starts_with(from)) {
      out += to;
      i += from.size();
    } else {
      const bool pair = text.substr(i).starts_with("\\ud") && i + 3 < text.size() &&
                        std::strchr("89abAB", text[i + 3]) != nullptr;
      const size_t length = pair ? 12 : 2;
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

}  // namespace

std::string dump(const Json& value, int indent) {
  std::string text = value.dump(indent, ' ', false, Json::error_handler_t::replace);
  return text.find("\\u0000") == std::string::npos ? text : exchange(text, "\\u0000", "\\udc");
}

Json parse(std::string_view text, const std::string& place, const std::string& hint) {
  std::string exchanged;
  if (text.find("\\udc") != std::string_view::npos) {
    exchanged = exchange(text, "\\udc", "\\u0000");
    text = exchanged;
  }
  Json value = parse_json(text);
  if (value.is_discarded()) fail("expected JSON, found something else", place, hint);
  return value;
}

Json parse_object(const std::string& text, const char* field) {
  Json value = parse(text, field);
  if (!value.is_object()) fail("expected a JSON object, found " + text, field);
  return value;
}

std::string read_text(const std::filesystem::path& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  bool failed = file == nullptr;
  int reason = errno;
  if (file != nullptr) {
    char part[65536];
    for (size_t got; (got = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, got);
    failed = std::ferror(file) != 0;
    reason = errno;
    std::fclose(file);
  }
  if (failed) fail(std::string("cannot be read: ") + std::strerror(reason), path.string());
  return text;
}

}  // namespace fungi::store
