// SPDX-License-Identifier: Apache-2.0
// What the gradients add, on one page: accuracy of combinations of blocks, per-class gains and
// losses, CKA between blocks, a few-shot curve, neighbours side by side, a 2-D map, the settings.
// Self-contained HTML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/base/scratch_matrix.h"
#include "fungi/feature/column_map.h"
#include "fungi/input/dataset.h"
#include "fungi/store/store.h"

namespace fungi {

// The stores of one seed, which also draws the matrix of a random `reduce`.
struct ReportDraw {
  uint32_t seed = 0;
  std::filesystem::path train, test;
};

struct ReportOptions {
  size_t k = 20;
  size_t pca = 512;
  Reduce reduce = Reduce::pca;  // how columns are shrunk to `pca`
  size_t queries = 12;  // shown with their neighbours
  size_t shown_neighbours = 8;
  size_t memory_limit = default_memory_limit();  // rows beyond this go to a scratch file
  // With draws the accuracies are also given as mean and deviation over all of them; the rest of
  // the page is of the first, whose stores are the page's.
  std::vector<ReportDraw> draws = {};
};

// What the reader should know about the rows, one line each; the page has them, too: test rows of
// classes without training rows, rows without a picture. Errors: classes that the training store
// lacks by name; pictures among which most of a store are missing.
std::vector<std::string> report_notes(const Store& train, const Store& test,
                                      const Dataset* train_pictures, const Dataset* test_pictures);

// Pictures are optional; without them the neighbours are left out. They must be the data sets the
// stores were made from; one that is missing leaves its place empty. Errors: those of
// report_notes(), stores that cannot be compared, k larger than the training rows.
// Sections that such rows cannot have (CKA of one row), or the memory not (CKA, the map), are left
// out with a note.
std::string make_report(const Store& train, const Store& test, const Dataset* train_pictures,
                        const Dataset* test_pictures, const ReportOptions& options, Pool& pool);

}  // namespace fungi
