// SPDX-License-Identifier: Apache-2.0
// Values as the bytes of a message between processes of one program on machines of one kind, and
// back. Internal to the library.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/base/matrix.h"

namespace fungi {

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    number(uint64_t(text.size()));
    bytes_.append(text);
  }
  void strings(const std::vector<std::string>& texts) {
    number(uint64_t(texts.size()));
    for (const std::string& text : texts) string(text);
  }
  template <class T>
  void numbers(const std::vector<T>& values) {
    number(uint64_t(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  template <class T>
  void matrix(View<const T> values) {
    number(uint64_t(values.rows)), number(uint64_t(values.cols));
    for (size_t i = 0; i < values.rows; ++i)
      bytes_.append(reinterpret_cast<const char*>(values.row(i)), values.cols * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// In the order in which they were written. Of the bytes that it was given, which must live on.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  std::string string() { return std::string(next(number<uint64_t>())); }
  std::vector<std::string> strings() {
    std::vector<std::string> all(number<uint64_t>());
    for (std::string& text : all) text = string();
    return all;
  }
  template <class T>
  std::vector<T> numbers() {
    std::vector<T> values(number<uint64_t>());
    if (!values.empty())
      std::memcpy(values.data(), next(values.size() * sizeof(T)).data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  Matrix<T> matrix() {
    const size_t rows = number<uint64_t>(), cols = number<uint64_t>();
    Matrix<T> values(rows, cols);
    for (size_t i = 0; i < rows && cols > 0; ++i)
      std::memcpy(values.row(i), next(cols * sizeof(T)).data(), cols * sizeof(T));
    return values;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view next(size_t count) {
    FUNGI_ASSERT(count <= rest_.size());
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace fungi
