// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets do with a data set: put the bytes into a file, open it, ask for all that a
// data set tells, expect nothing but an Error.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"

namespace fungi {

// A folder of this process, in memory where the system has such a place.
inline const std::filesystem::path& fuzz_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name =
          std::filesystem::exists("/dev/shm") ? "/dev/shm/fungi-fuzz-XXXXXX" : "fungi-fuzz-XXXXXX";
      if (!::mkdtemp(name.data())) std::abort();
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

// `read`: the samples' bytes, too.
inline void open_bytes(const std::string& file, DatasetKind kind, bool read, const uint8_t* data,
                       size_t size) {
  const std::filesystem::path path = fuzz_folder() / file;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), std::streamsize(size));
  try {
    const auto dataset = open_dataset(path, {.kind = kind});
    for (size_t i = 0; i < dataset->size(); ++i) {
      const auto stored = dataset->stored_bytes(i);
      const size_t classes = dataset->class_names().size();
      if (dataset->label(i) < -1 || (classes && dataset->label(i) >= int(classes))) std::abort();
      if (!read) continue;
      try {
        if (const size_t got = dataset->read(i).size(); stored && got != *stored) std::abort();
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace fungi
