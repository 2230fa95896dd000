// SPDX-License-Identifier: Apache-2.0
// MatFile by libmatio, or what to install. What the library gives is checked before it is used: the
// files are strangers'.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/image.h"
#include "fungi/input/mat_file.h"

#ifdef FUNGI_HAVE_MATIO

#include <matio.h>

namespace fungi::dataset {

namespace {

constexpr const char* kAgain = "unpack the archive of the data set again";
constexpr uint64_t kLargest = uint64_t{64} << 20;  // the largest published list has one megabyte
constexpr size_t kMostElements = size_t{1} << 22;

size_t elements_of(const matvar_t& variable) {
  size_t count = 1;
  for (int i = 0; i < variable.rank; ++i) {
    const size_t side = variable.dims[i];
    if (side != 0 && count > kMostElements / side) return kMostElements + 1;
    count *= side;
  }
  return count;
}

}  // namespace

struct MatFile::State {
  std::string place;
  mat_t* file = nullptr;
  std::map<std::string, matvar_t*> variables;

  ~State() {
    for (auto& [name, variable] : variables) Mat_VarFree(variable);
    if (file) Mat_Close(file);
  }

  [[noreturn]] void broken(const std::string& expected) const {
    fail(fmt::format("expected {}, found something else", expected), place, kAgain);
  }

  const matvar_t& variable(const char* name) {
    matvar_t*& found = variables[name];
    if (!found) found = Mat_VarRead(file, name);
    if (!found || !found->dims || elements_of(*found) > kMostElements)
      fail(fmt::format("expected the variable '{}', found none that can be read", name), place,
           kAgain);
    return *found;
  }

  template <class T>
  static std::vector<int64_t> copied(const matvar_t& from, size_t count) {
    std::vector<int64_t> out(count);
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, static_cast<const char*>(from.data) + i * sizeof(T), sizeof(T));
      const double number = double(value);
      out[i] = std::abs(number) < 9e15 && number == std::floor(number) ? int64_t(number) : -1;
    }
    return out;
  }

  std::vector<int64_t> numbers_of(const matvar_t* from, const std::string& what) const {
    const size_t count = from && from->dims ? elements_of(*from) : 0;
    const auto holds = [&](size_t width) {
      return from->data && from->nbytes / width >= count && size_t(from->data_size) == width;
    };
    if (from && !from->isComplex) switch (from->class_type) {
        case MAT_C_DOUBLE:
          if (holds(8)) return copied<double>(*from, count);
          break;
        case MAT_C_SINGLE:
          if (holds(4)) return copied<float>(*from, count);
          break;
        case MAT_C_INT64:
          if (holds(8)) return copied<int64_t>(*from, count);
          break;
        case MAT_C_UINT64:
          if (holds(8)) return copied<uint64_t>(*from, count);
          break;
        case MAT_C_INT32:
          if (holds(4)) return copied<int32_t>(*from, count);
          break;
        case MAT_C_UINT32:
          if (holds(4)) return copied<uint32_t>(*from, count);
          break;
        case MAT_C_INT16:
          if (holds(2)) return copied<int16_t>(*from, count);
          break;
        case MAT_C_UINT16:
          if (holds(2)) return copied<uint16_t>(*from, count);
          break;
        case MAT_C_INT8:
          if (holds(1)) return copied<int8_t>(*from, count);
          break;
        case MAT_C_UINT8:
          if (holds(1)) return copied<uint8_t>(*from, count);
          break;
        default:
          break;
      }
    broken("whole numbers in " + what);
  }

  std::string text_of(const matvar_t* from, const std::string& what) const {
    const size_t count = from && from->dims ? elements_of(*from) : 0;
    const size_t width = from ? size_t(std::max(from->data_size, 0)) : 0;
    if (!from || from->class_type != MAT_C_CHAR || (width != 1 && width != 2) ||
        (count > 0 && (!from->data || from->nbytes / width < count)))
      broken("text in " + what);
    std::string text;
    const auto* bytes = static_cast<const uint8_t*>(from->data);
    for (size_t i = 0; i < count; ++i) {
      uint16_t unit = 0;
      std::memcpy(&unit, bytes + i * width, width);
      if (width == 1 && from->data_type != MAT_T_UINT8)
        text += char(unit);  // UTF-8 as it is
      else if (unit < 0x80)
        text += char(unit);
      else if (unit < 0x800)
        text += {char(0xc0 | unit >> 6), char(0x80 | (unit & 0x3f))};
      else
        text +=
            {char(0xe0 | unit >> 12), char(0x80 | (unit >> 6 & 0x3f)), char(0x80 | (unit & 0x3f))};
    }
    return text;
  }

  // The parts of a cell array or of structures, which the library keeps as pointers; where a file
  // is damaged there are fewer of them than its header says.
  std::vector<const matvar_t*> parts(const matvar_t& of, size_t count, const char* name) const {
    if (!of.data || of.nbytes / sizeof(matvar_t*) < count)
      broken(fmt::format("{} parts in '{}'", count, name));
    const auto* first = static_cast<matvar_t* const*>(of.data);
    return {first, first + count};
  }

  std::vector<const matvar_t*> cells(const char* name) {
    const matvar_t& of = variable(name);
    if (of.class_type != MAT_C_CELL) broken(fmt::format("texts in '{}'", name));
    return parts(of, elements_of(of), name);
  }

  std::vector<const matvar_t*> fields(const char* name, const char* field) {
    const matvar_t& of = variable(name);
    if (of.class_type != MAT_C_STRUCT) broken(fmt::format("structures in '{}'", name));
    const size_t width = Mat_VarGetNumberOfFields(const_cast<matvar_t*>(&of)),
                 count = elements_of(of);
    char* const* names = Mat_VarGetStructFieldnames(&of);
    size_t at = 0;
    while (at < width && names && (!names[at] || std::string_view(names[at]) != field)) ++at;
    if (!names || at >= width || width > kMostElements || count > kMostElements / width)
      broken(fmt::format("the field '{}' in '{}'", field, name));
    const auto all = parts(of, count * width, name);
    std::vector<const matvar_t*> out;
    for (size_t i = 0; i < count; ++i) out.push_back(all[i * width + at]);
    return out;
  }
};

MatFile::MatFile(const std::filesystem::path& file) : state_(std::make_unique<State>()) {
  state_->place = file.string();
  const auto size = size_of_file(file);
  if (!size) fail("the list is missing", state_->place, kAgain);
  if (*size > kLargest)
    fail(fmt::format("expected a list of at most {} bytes, found {}", kLargest, *size),
         state_->place, kAgain);
  check_mat(read_file_bytes(file), state_->place);
  state_->file = Mat_Open(file.c_str(), MAT_ACC_RDONLY);
  if (!state_->file) fail("expected a MATLAB file, found something else", state_->place, kAgain);
}

MatFile::~MatFile() = default;

std::vector<int64_t> MatFile::numbers(const char* variable) const {
  return state_->numbers_of(&state_->variable(variable), fmt::format("'{}'", variable));
}

std::vector<std::string> MatFile::texts(const char* variable) const {
  std::vector<std::string> out;
  for (const matvar_t* one : state_->cells(variable))
    out.push_back(state_->text_of(one, fmt::format("'{}'", variable)));
  return out;
}

std::vector<int64_t> MatFile::field_numbers(const char* variable, const char* field) const {
  std::vector<int64_t> out;
  for (const matvar_t* one : state_->fields(variable, field)) {
    const auto values = state_->numbers_of(one, fmt::format("'{}.{}'", variable, field));
    if (values.size() != 1) state_->broken(fmt::format("one number in '{}.{}'", variable, field));
    out.push_back(values[0]);
  }
  return out;
}

std::vector<std::string> MatFile::field_texts(const char* variable, const char* field) const {
  std::vector<std::string> out;
  for (const matvar_t* one : state_->fields(variable, field))
    out.push_back(state_->text_of(one, fmt::format("'{}.{}'", variable, field)));
  return out;
}

}  // namespace fungi::dataset

#else

namespace fungi::dataset {

struct MatFile::State {};

MatFile::MatFile(const std::filesystem::path& file) {
  fail("this build of fungi does not read MATLAB files: it was built without libmatio",
       file.string(), "install libmatio-dev and build it again with -DFUNGI_MATIO=ON");
}
MatFile::~MatFile() = default;
std::vector<int64_t> MatFile::numbers(const char*) const { return {}; }
std::vector<std::string> MatFile::texts(const char*) const { return {}; }
std::vector<int64_t> MatFile::field_numbers(const char*, const char*) const { return {}; }
std::vector<std::string> MatFile::field_texts(const char*, const char*) const { return {}; }

}  // namespace fungi::dataset

#endif
