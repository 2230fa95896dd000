// SPDX-License-Identifier: Apache-2.0
// One sample as it leaves the input room: who it is, what it is called, what it shows.
#pragma once

#include <string>

#include "fungi/input/image.h"

namespace fungi {

struct Sample {
  std::string id;  // stable: the same file has the same id in every run, order and batch
  int label = -1;  // class number; -1 when unknown
  Image image;
};

}  // namespace fungi
