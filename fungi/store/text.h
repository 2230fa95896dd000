// SPDX-License-Identifier: Apache-2.0
// The JSON of the store. Ids are file names, and file names are bytes: a byte that is no UTF-8 is
// written \udcXX, which is how Python's os.fsencode / surrogateescape spells it, so that every id
// comes back exactly. Internal to the store.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fungi::store {

using Json = nlohmann::ordered_json;

// Between raw bytes and the strings that stand inside a Json value.
std::string to_json_string(std::string_view bytes);
std::string from_json_string(std::string_view text);

// Unicode characters; a byte that is no UTF-8 is the lone surrogate U+DCXX.
std::u32string to_code_points(std::string_view bytes);

// Between Json values and text. dump: indent < 0 is one line. parse: Error naming `place` on
// anything that is no JSON.
std::string dump(const Json& value, int indent = -1);
Json parse(std::string_view text, const std::string& place, const std::string& hint = "");
Json parse_object(const std::string& text, const char* field);  // Error on any other value, too

// The text of a whole file; Error with the system's own words when it cannot be read.
std::string read_text(const std::filesystem::path& path);

}  // namespace fungi::store
