// SPDX-License-Identifier: Apache-2.0
// Rows that are searched again and again, exactly: their 8-bit codes are made once, and stay in
// memory beside them. A search then goes through a quarter of the bytes, with all of its queries at
// once. The answer is that of knn(), bit for bit. Const, safe to share between threads. Internal to
// the library.
#pragma once

#include <vector>

#include "fungi/search/knn.h"
#include "fungi/search/scan.h"

namespace fungi {

class KnnRows {
 public:
  // Borrows the rows. Error on NaN or infinity, naming the row.
  KnnRows(View<const float> rows, Metric metric, Pool& pool);
  // Bytes of what is kept for each row of so many columns, beside the row itself.
  static size_t bytes_of_row(size_t columns);

  // Errors as those of knn().
  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    KnnWork* work = nullptr) const;

 private:
  View<const float> rows_;
  Metric metric_;
  std::vector<float> centre_;
  std::vector<double> norms_;
  std::vector<search::ScanRows> blocks_;
};

}  // namespace fungi
