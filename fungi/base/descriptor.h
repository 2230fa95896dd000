// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed in the end (POSIX).
#pragma once

#include <unistd.h>

namespace fungi {

struct Descriptor {
  int number = -1;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace fungi
