// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "python/bind.h"

namespace fungi::python {

nb::object to_str(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape");
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

std::string from_str(nb::handle text) {
  if (PyBytes_Check(text.ptr()))
    return {PyBytes_AsString(text.ptr()), size_t(PyBytes_Size(text.ptr()))};
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), size_t(PyBytes_Size(bytes.ptr()))};
}

nb::list to_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(to_str(text));
  return list;
}

nb::object to_python(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null: return nb::none();
    case nlohmann::json::value_t::boolean: return nb::bool_(value.get<bool>());
    case nlohmann::json::value_t::number_integer: return nb::int_(value.get<int64_t>());
    case nlohmann::json::value_t::number_unsigned: return nb::int_(value.get<uint64_t>());
    case nlohmann::json::value_t::number_float: return nb::float_(value.get<double>());
    case nlohmann::json::value_t::array: {
      nb::list list;
      for (const nlohmann::json& one : value) list.append(to_python(one));
      return list;
    }
    case nlohmann::json::value_t::object: {
      nb::dict dict;
      for (const auto& [key, one] : value.items()) dict[to_str(key)] = to_python(one);
      return dict;
    }
    default: return to_str(value.get<std::string>());
  }
}

unsigned threads_or_default(unsigned threads) { return threads ? threads : default_threads(); }

}  // namespace fungi::python
