// SPDX-License-Identifier: Apache-2.0
// What the files of the Python module share: values from and to Python, and work that runs while
// Python goes on. One file per subject; each adds its functions to the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fungi/fungi.h"

namespace fungi::python {

namespace nb = nanobind;

// Names of files are bytes: those that are no UTF-8 come and go as os.fsdecode() has them.
nb::object to_str(std::string_view text);
std::string from_str(nb::handle text);
nb::list to_list(const std::vector<std::string>& texts);
nb::object to_python(const nlohmann::json& value);

// Arrays of C-contiguous numbers that Python owns; nothing is copied where they are that already.
template <class T>
using Array = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
View<const T> view_of(const Array<T>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

// A numpy array that owns what it shows.
template <class T>
nb::object to_numpy(Matrix<T> matrix) {
  auto* kept = new Matrix<T>(std::move(matrix));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Matrix<T>*>(p); });
  const size_t shape[2] = {kept->rows(), kept->cols()};
  const int64_t strides[2] = {int64_t(kept->stride()), 1};
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 2, shape, owner, strides));
}
template <class T>
nb::object to_numpy(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const size_t shape[1] = {kept->size()};
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, shape, owner));
}

// What the library's words (fungi/base/words.h) are in Python.
std::string worded(std::string_view text);
nb::list worded_list(const std::vector<std::string>& texts);
// An exception of fungi._errors, ready to be thrown.
[[noreturn]] void raise(const char* kind, const std::string& message, const std::string& place,
                        const std::string& hint);

unsigned threads_or_default(unsigned threads);

void add_errors(nb::module_& m);
void add_stores(nb::module_& m);
void add_evaluations(nb::module_& m);
void add_rankings(nb::module_& m);
void add_neighbours(nb::module_& m);
void add_indices(nb::module_& m);
void add_searches(nb::module_& m);
void add_models(nb::module_& m);
void add_extractors(nb::module_& m);
void add_extractions(nb::module_& m);
void add_works(nb::module_& m);
void add_facts(nb::module_& m);
void add_segments(nb::module_& m);

}  // namespace fungi::python
