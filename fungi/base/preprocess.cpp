// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/preprocess.h"

namespace fungi {

const char* to_string(Filter filter) { return filter == Filter::bilinear ? "bilinear" : "bicubic"; }

const char* to_string(Preprocess::Resize resize) {
  switch (resize) {
    case Preprocess::Resize::none:
      return "none";
    case Preprocess::Resize::short_side:
      return "short_side";
    case Preprocess::Resize::squash:
      return "squash";
  }
  return "";
}

}  // namespace fungi
