// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets do with a data set: put the bytes into a file, open it, ask for all that a
// data set tells, expect nothing but an Error.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/support/folder.h"

namespace fungi {

// `read`: the samples' bytes, too. The file stays as it is, so that none of them may be
// `Exhausted`.
inline void open_bytes(const std::string& file, const DatasetOptions& options, bool read,
                       const uint8_t* data, size_t size) {
  static const test::TemporaryFolder folder(test::place_in_memory());
  const auto path = folder.write(file, {reinterpret_cast<const char*>(data), size});
  try {
    const auto dataset = open_dataset(path, options);
    for (size_t i = 0; i < dataset->size(); ++i) {
      const auto stored = dataset->stored_bytes(i);
      const size_t classes = dataset->class_names().size();
      if (dataset->label(i) < -1 || (classes && dataset->label(i) >= int(classes))) std::abort();
      if (!read) continue;
      try {
        const std::vector<uint8_t> bytes = dataset->read(i);
        if (stored && bytes.size() != *stored) std::abort();
        if (options.samples == SampleKind::text) check(dataset->decode(i, bytes));
      } catch (const Exhausted&) {
        std::abort();
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace fungi
