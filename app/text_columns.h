// SPDX-License-Identifier: Apache-2.0
// --text-column, --label-column and --id-column, wherever a data set of texts can be named.
#pragma once

#include <string>

#include "app/cli.h"
#include "fungi/input/dataset.h"

namespace fungi::app {

struct TextColumnsArguments {
  std::string text, label, id;

  void add_to(CLI::App& verb);
  void apply(DatasetOptions& options) const;
};

}  // namespace fungi::app
