// SPDX-License-Identifier: Apache-2.0
// The data of an array, once its header is known, as f32 or integers. Internal to this room.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/checkpoint/npy_header.h"

namespace fungi {

size_t npy_rows(const NpyHeader& header);
size_t npy_cols(const NpyHeader& header);
Matrix<float> npy_floats(const NpyHeader& header, std::span<const std::byte> data,
                         const std::string& place);
std::vector<int64_t> npy_integers(const NpyHeader& header, std::span<const std::byte> data,
                                  const std::string& place);

}  // namespace fungi
