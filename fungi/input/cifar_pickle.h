// SPDX-License-Identifier: Apache-2.0
// CIFAR's Python version: a pickle of a dict per batch. Nothing in it is executed
// (checkpoint/pickle.h). Internal to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fungi::dataset {

struct CifarBatch {
  uint64_t offset =
      0;  // of the pixels in the file: planes of red, green and blue, one after another
  std::vector<int> labels;  // of CIFAR-100 the fine ones
  bool hundred = false;
};

// Error where the file is no such pickle, or its parts do not fit.
CifarBatch read_cifar_batch(const std::filesystem::path& file);
// "label_names" or "fine_label_names" of batches.meta or meta.
std::vector<std::string> read_cifar_names(const std::filesystem::path& file);

}  // namespace fungi::dataset
