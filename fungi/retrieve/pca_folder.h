// SPDX-License-Identifier: Apache-2.0
// A PCA in a folder of its own, with the rows of some stores through it: what other programs read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fungi/feature/reduction.h"

namespace fungi {

class Comm;

struct PcaFolderOptions {
  std::string features = {};  // "embedding+kl"; empty: every block but kept factors
  size_t dim = 512;           // columns to shrink to: fewer than rows and columns
  std::filesystem::path apply =
      {};  // a folder whose PCA is used; then the others are not looked at
  Comm* ranks = nullptr;  // other processes that fit with this one; rank 0 alone writes
};

struct PcaFolder {
  Reduction reduction;
  double explained_share = 0;  // of the variance of the rows it was fitted on
  struct Vectors {
    std::filesystem::path store, file;
    size_t rows = 0;
  };
  std::vector<Vectors> files;  // one .npy per store, named after it
};

// Fits on the first store. An older folder of this kind is replaced. Errors: two stores of one
// name, stores that differ in a setting, a folder that holds anything else or lies in a store.
PcaFolder write_pca_folder(const std::vector<std::filesystem::path>& stores,
                           const std::filesystem::path& out, const PcaFolderOptions& options,
                           Pool& pool);

}  // namespace fungi
