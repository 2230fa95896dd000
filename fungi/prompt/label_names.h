// SPDX-License-Identifier: Apache-2.0
// What labels are called in prompts and replies.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fungi/store/store.h"

namespace fungi {

struct LabelNames {
  std::vector<std::string> names;  // by the number in the training store; empty: no such label

  std::string list() const;  // "card arrival, exchange rate, ...", in the order of the numbers
  // The number of a name without white space around it, in exactly these letters; -1: no label.
  int64_t find(std::string_view reply) const;
};

// Those of the classes of the store, or, where they are bare numbers, the numbers that occur.
// `file`: other names for them, a line "label<TAB>name" each; columns behind these are left alone.
// Errors: no labels, a label that the file lacks, a name of two labels, an empty one, no UTF-8.
LabelNames label_names(const Store& train, const std::filesystem::path& file = {});

}  // namespace fungi
