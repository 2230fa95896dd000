// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/error.h"

#include <stdexcept>
#include <utility>

namespace fungi {

Error::Error(std::string message, std::string place, std::string hint)
    : message_(std::move(message)), place_(std::move(place)), hint_(std::move(hint)) {
  if (!place_.empty()) what_ = place_ + ": ";
  what_ += message_;
  if (!hint_.empty()) what_ += " (" + hint_ + ")";
}

void fail(std::string message, std::string place, std::string hint) {
  throw Error(std::move(message), std::move(place), std::move(hint));
}

void fail_not_finite(const char* what, size_t row) {
  fail("expected finite numbers, found NaN or infinity in row " + std::to_string(row), what,
       "remove the row or extract it again");
}

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) +
                         ": internal promise broken: " + expression);
}

}  // namespace fungi
