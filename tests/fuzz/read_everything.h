// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets do with a reader: open the bytes, read every float tensor, expect nothing
// but an Error.
#pragma once

#include <cstdint>
#include <span>

#include "fungi/base/error.h"
#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {

inline void read_everything(SourcePointer (*open)(FilePointer), const uint8_t* data, size_t size) {
  try {
    const auto source = open(FileBytes::borrow("fuzz", std::as_bytes(std::span(data, size))));
    for (size_t i = 0; i < source->tensors.size(); ++i) {
      if (!is_float(source->tensors[i].type)) continue;
      Matrix<float> values(1, source->tensors[i].count());
      if (!values.empty()) source->read(i, values.data());
    }
  } catch (const Error&) {
  }
}

}  // namespace fungi
