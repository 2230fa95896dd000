// SPDX-License-Identifier: Apache-2.0
// What the standard library leaves out about text. Internal to the library.
#pragma once

#include <string>

namespace fungi {

// Of ASCII letters only, whatever the locale.
inline std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return text;
}

}  // namespace fungi
