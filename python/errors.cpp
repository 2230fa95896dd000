// SPDX-License-Identifier: Apache-2.0
// The library's errors as exceptions of fungi._errors, with its words as Python says them.
#include <fmt/format.h>

#include <set>

#include "fungi/base/words.h"
#include "fungi/input/image.h"
#include "python/bind.h"

namespace fungi::python {
namespace {

// Functions of the module; every other word is the name of an argument.
const std::set<std::string_view> kFunctions{"extract", "index",   "inspect", "merge",  "models",
                                            "pca",     "project", "pull",    "segment"};

// As code has it; what stands for a value (N, STORE, ...) as it is.
std::string quoted(std::string_view value) {
  constexpr auto kStandIn = "ABCDEFGHIJKLMNOPQRSTUVWXYZ.";
  if (value.find_first_not_of(kStandIn) == std::string_view::npos) return std::string(value);
  return fmt::format("\"{}\"", value);
}

std::optional<std::string> said(const Word& word) {
  if (kFunctions.contains(word.name))
    return fmt::format("fungi.{}({})", word.name,
                       word.value.empty() ? "" : fmt::format("\"{}\"", word.value));
  if (word.name == "stated_facts") {
    if (word.key.empty()) return "facts";
    return fmt::format("facts={{\"{}\": {}}}", word.key,
                       word.value.empty() ? "..." : quoted(word.value));
  }
  const std::string_view name = word.name == "lambda" ? "lambdas" : word.name;
  if (word.value.empty()) return std::string(name);
  return fmt::format("{}={}", name, quoted(word.value));
}

nb::object exception_of(const char* kind, const std::string& message, const std::string& place,
                        const std::string& hint) {
  return nb::module_::import_("fungi._errors")
      .attr(kind)(to_str(message), to_str(place), to_str(hint));
}

void set_exception(const char* kind, const std::string& message, const std::string& place,
                   const std::string& hint) {
  const nb::object made = exception_of(kind, message, place, hint);
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

}  // namespace

std::string worded(std::string_view text) { return with_words(text, said); }

nb::list worded_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(to_str(worded(text)));
  return list;
}

void raise(const char* kind, const std::string& message, const std::string& place,
           const std::string& hint) {
  set_exception(kind, message, place, hint);
  throw nb::python_error();
}

void add_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& e) {
      const std::string& place = e.place();  // a word alone, or the name of a file as it is
      const bool word = place.starts_with('`') && place.find('`', 1) + 1 == place.size();
      set_exception("Error", worded(e.message()), word ? worded(place) : place, worded(e.hint()));
    }
  });
  m.def("worded", [](const std::string& text) { return to_str(worded(text)); });
}

}  // namespace fungi::python
