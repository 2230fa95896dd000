// SPDX-License-Identifier: Apache-2.0
// .npy and .npz, the format of the feature store and of plain arrays from numpy: mapped or loaded,
// and written. Reading: little-endian floats, integers and bools, C and Fortran order. Opened files
// are const, safe to share. Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

// Sizes are seen as a matrix: rows = shape[0], cols = the product of the rest; a vector is one
// column, a scalar 1x1.
class NpyFile {
 public:
  static NpyFile open(const std::filesystem::path& path);  // maps the file; its data is not read

  NpyFile(NpyFile&&) noexcept;
  NpyFile& operator=(NpyFile&&) noexcept;
  ~NpyFile();

  const std::string& path() const;
  const std::string& descr() const;  // numpy's name of the type, e.g. "<f4"
  const std::vector<size_t>& shape() const;
  size_t rows() const;
  size_t cols() const;

  // The mapped data itself, valid as long as this object; T = float, double, int64_t, int32_t or
  // uint8_t must be the file's own type, in C order. Error otherwise.
  template <class T>
  View<const T> view() const;

  // Whether rows here and there will be read, so that nothing around them is of use.
  void expect_random(bool yes) const;
  // Pages that were read leave this process's memory; later reads bring them back.
  void release() const;

  Matrix<float> read() const;  // row-major; floats, integers and bools, rounded to f32
  std::vector<int64_t> read_integers() const;  // row-major; integers and bools

 private:
  NpyFile();
  struct State;
  std::unique_ptr<State> state_;
};

// The arrays of an .npz file by name (without ".npy"); one lock guards the archive.
class NpzFile {
 public:
  static NpzFile open(const std::filesystem::path& path);

  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  const std::vector<std::string>& names() const;  // in the order of the file
  bool contains(std::string_view name) const;
  const std::vector<size_t>& shape(std::string_view name) const;
  Matrix<float> read(std::string_view name) const;                  // as NpyFile::read
  std::vector<int64_t> read_integers(std::string_view name) const;  // as NpyFile::read_integers

 private:
  NpzFile();
  struct State;
  std::unique_ptr<State> state_;
};

// A borrowed array to be written, row-major and compact.
struct NpyArray {
  std::string descr;
  std::vector<size_t> shape;
  std::span<const std::byte> bytes;
};

template <class T>
inline constexpr const char* kNpyDescr = nullptr;
template <>
inline constexpr const char* kNpyDescr<float> = "<f4";
template <>
inline constexpr const char* kNpyDescr<double> = "<f8";
template <>
inline constexpr const char* kNpyDescr<int64_t> = "<i8";
template <>
inline constexpr const char* kNpyDescr<int32_t> = "<i4";
template <>
inline constexpr const char* kNpyDescr<uint8_t> = "|u1";

template <class T>
NpyArray npy_array(const T* data, std::vector<size_t> shape) {
  static_assert(kNpyDescr<T> != nullptr, "this type has no .npy name here");
  size_t count = 1;
  for (size_t dimension : shape) count *= dimension;
  return {kNpyDescr<T>, std::move(shape), std::as_bytes(std::span(data, count))};
}
template <class T>
NpyArray npy_array(View<const T> matrix) {
  FUNGI_ASSERT(matrix.stride == matrix.cols);
  return npy_array(matrix.data, {matrix.rows, matrix.cols});
}
template <class T>
NpyArray npy_array(const Matrix<T>& matrix) {
  return npy_array(matrix.view());
}
template <class T>
NpyArray npy_array(const std::vector<T>& vector) {
  return npy_array(vector.data(), {vector.size()});
}

// The bytes before the data, as numpy.save writes them (a multiple of 64).
std::string npy_header(const std::string& descr, const std::vector<size_t>& shape);

// Both write to a temporary name and rename (atomic_file.h).
void write_npy(const std::filesystem::path& path, const NpyArray& array);
void write_npz(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, NpyArray>>& arrays);

// An .npz of arrays that need not be in memory: begin() an array, append() its bytes piece by
// piece. Without finish() nothing is left, and an older file at `path` is untouched.
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& path);
  ~NpzWriter();

  void begin(const std::string& name, const std::string& descr, const std::vector<size_t>& shape);
  void append(std::span<const std::byte> bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
