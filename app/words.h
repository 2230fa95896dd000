// SPDX-License-Identifier: Apache-2.0
// What the library's words (fungi/base/words.h) are on the command line.
#pragma once

#include <string>
#include <string_view>

#include "fungi/base/error.h"

namespace fungi::app {

// A message, hint or note of the library as this program's users can follow it: `kind=flat` is
// "--kind flat".
std::string worded(std::string_view text);
Error worded(const Error& error);

}  // namespace fungi::app
