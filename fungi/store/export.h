// SPDX-License-Identifier: Apache-2.0
// Features for other programs: HDF5 with the names that the paper's scripts read (SPEC 1.8), and
// one .npz.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fungi/store/store.h"

namespace fungi {

bool have_hdf5();  // whether this build can write HDF5

struct Hdf5Options {
  std::string split;  // "train" → train-embeddings.h5; empty: embeddings.h5
  // Name of the dataset in the files of the gradients; dataset_name() (feature/settings.h) has that
  // of the store's layer.
  std::string layer = "attn_proj";
};

// Writes into `folder` (made when missing) and returns the files:
//   embeddings.h5   embeddings float32 [n, d], targets uint32 [n] (when the rows have labels; an
//                   Error when only some have), ids and classes (strings; names of the targets)
//   <block>.h5      for every other block: <layer> float32 [n, width], or [n, rows, width] where a
//                   sample has several
// Rows are written as the store has them; the attribute unit_rows says whether they all have
// length 1. The paper's own files hold gradients before normalisation, which a store does not keep.
// Shards are copied one at a time.
std::vector<std::filesystem::path> export_hdf5(const Store& store,
                                               const std::filesystem::path& folder,
                                               const Hdf5Options& options = {});

// One .npz: an array for every block, [n, width] or [n, rows, width], ids (unicode), labels (int64,
// -1: none) and classes. Shards are copied one at a time.
void export_npz(const Store& store, const std::filesystem::path& file);

}  // namespace fungi
