// SPDX-License-Identifier: Apache-2.0
// Element types of files: which of them are floats, how they become f32, and sizes computed without
// overflow; limits and hints. Used by every reader of this room. Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/checkpoint/checkpoint.h"

namespace fungi {

inline constexpr size_t kMostDimensions = 64;

// What to do about a file, for Error::hint.
inline constexpr const char* kFetchAgain = "the file is damaged or incomplete: fetch it again";
inline constexpr const char* kHostile =
    "the file is damaged or hostile: fetch it again from its author";

bool is_float(DType type);

// count elements of a float type, at any alignment, as f32. Half precision is exact, f64 rounds to
// nearest.
void to_floats(DType type, const std::byte* from, size_t count, float* to);

std::optional<size_t> checked_add(size_t a, size_t b);       // empty when the sum does not fit
std::optional<size_t> checked_multiply(size_t a, size_t b);  // empty when the product does not fit

// Product of the shape; Error when it (times 8 bytes) does not fit, even if some other dimension is
// 0.
size_t checked_count(const std::vector<size_t>& shape, const std::string& place);

// "768x3x16x16"; "scalar" when empty.
std::string shape_text(const std::vector<size_t>& shape);

// A name out of a file, fit for a message: control characters replaced, cut after 200 characters.
std::string printable(std::string_view name);
// "file: tensor 'name'", for Error::place.
std::string tensor_place(const std::string& path, std::string_view name);

}  // namespace fungi
