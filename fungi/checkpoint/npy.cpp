// SPDX-License-Identifier: Apache-2.0
// .npy: mapped reading, and writing that gives the very bytes of numpy.save.
#include "fungi/checkpoint/npy.h"

#include <fmt/format.h>

#include "fungi/base/atomic_file.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/npy_header.h"
#include "fungi/checkpoint/npy_values.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {

struct NpyFile::State {
  std::shared_ptr<const FileBytes> file;
  NpyHeader header;

  std::span<const std::byte> data() const { return file->bytes().subspan(header.data_offset); }
};

NpyFile::NpyFile() : state_(std::make_unique<State>()) {}
NpyFile::NpyFile(NpyFile&&) noexcept = default;
NpyFile& NpyFile::operator=(NpyFile&&) noexcept = default;
NpyFile::~NpyFile() = default;

void NpyFile::expect_random(bool yes) const { state_->file->expect_random(yes); }
void NpyFile::release() const { state_->file->release(state_->data()); }

NpyFile NpyFile::open(const std::filesystem::path& path) {
  NpyFile npy;
  npy.state_->file = FileBytes::map(path);
  const std::string_view text = npy.state_->file->text();
  npy.state_->header =
      parse_npy_header(text.substr(0, kLongestNpyHeader), text.size(), path.string());
  return npy;
}

const std::string& NpyFile::path() const { return state_->file->path(); }
const std::string& NpyFile::descr() const { return state_->header.descr; }
const std::vector<size_t>& NpyFile::shape() const { return state_->header.shape; }
size_t NpyFile::rows() const { return npy_rows(state_->header); }
size_t NpyFile::cols() const { return npy_cols(state_->header); }

template <class T>
View<const T> NpyFile::view() const {
  const NpyHeader& header = state_->header;
  const std::byte* start = state_->data().data();
  const bool same_type = header.descr.substr(1) == std::string_view(kNpyDescr<T>).substr(1);
  const bool row_major = !header.fortran_order || header.shape.size() < 2;
  if (!same_type || !row_major)
    fail(fmt::format("holds '{}' in {} order; '{}' in C order was expected",
                     printable(header.descr), header.fortran_order ? "Fortran" : "C", kNpyDescr<T>),
         path(), "convert it: numpy.save(path, numpy.ascontiguousarray(array, dtype))");
  if (reinterpret_cast<uintptr_t>(start) % alignof(T) != 0)
    fail(fmt::format("its data begins at byte {}, where it cannot be mapped", header.data_offset),
         path(), "write it again with numpy.save");
  return {reinterpret_cast<const T*>(start), rows(), cols()};
}
template View<const float> NpyFile::view() const;
template View<const double> NpyFile::view() const;
template View<const int64_t> NpyFile::view() const;
template View<const int32_t> NpyFile::view() const;
template View<const uint8_t> NpyFile::view() const;

Matrix<float> NpyFile::read() const { return npy_floats(state_->header, state_->data(), path()); }

std::vector<int64_t> NpyFile::read_integers() const {
  return npy_integers(state_->header, state_->data(), path());
}

std::string npy_header(const std::string& descr, const std::vector<size_t>& shape) {
  constexpr size_t kFixedPart = 10, kMultiple = 64, kLongestFirst = 21;
  std::string sizes;
  for (size_t dimension : shape) {
    if (!sizes.empty()) sizes += ' ';
    sizes += std::to_string(dimension);
    sizes += ',';
  }
  if (shape.size() > 1) sizes.pop_back();
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
  // numpy leaves room for the first dimension to grow to 21 digits in place.
  if (!shape.empty()) dict.append(kLongestFirst - std::to_string(shape[0]).size(), ' ');
  dict.append(round_up(kFixedPart + dict.size() + 1, kMultiple) - kFixedPart - dict.size() - 1,
              ' ');
  dict += '\n';
  FUNGI_ASSERT(dict.size() < 65536);
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(dict.size() & 0xFF);
  head += static_cast<char>(dict.size() >> 8);
  return head + dict;
}

void write_npy(const std::filesystem::path& path, const NpyArray& array) {
  const std::string head = npy_header(array.descr, array.shape);
  write_file_atomically(path, {std::as_bytes(std::span(head)), array.bytes});
}

}  // namespace fungi
