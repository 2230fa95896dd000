// SPDX-License-Identifier: Apache-2.0
// The texts of a store's rows, read again from the data set that the store was made of. Safe to
// share between threads. Internal to the library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fungi/input/dataset.h"
#include "fungi/store/store.h"

namespace fungi {

class StoreTexts {
 public:
  // `word` names the option that gave the data set: "`train_data`". Errors: rows that are no texts,
  // a row that the data set lacks, or whose text is another one by now.
  StoreTexts(const Store& store, std::unique_ptr<Dataset> data, const std::string& word);

  std::string text(size_t row) const;

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<size_t> place_;  // in the data set, of each row
};

// Error where the rows of the store are known to be something else.
void require_texts(const Store& store);

}  // namespace fungi
