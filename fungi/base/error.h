// SPDX-License-Identifier: Apache-2.0
// What the library throws. Error for all that is wrong with arguments, files and data: what was
// expected and found, where, and what to do about it. Besides: std::bad_alloc, std::logic_error for
// a broken promise between two of our own functions (FUNGI_ASSERT: a fault of the library), and
// whatever your own callbacks, objectives and data sets throw.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace fungi {

class Error : public std::exception {
 public:
  // message: what was expected and what was found. place: file, tensor, option or sample. hint:
  // what to do.
  explicit Error(std::string message, std::string place = "", std::string hint = "");

  const std::string& message() const noexcept { return message_; }
  const std::string& place() const noexcept { return place_; }
  const std::string& hint() const noexcept { return hint_; }

  // "place: message (hint)", on one line.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string message_, place_, hint_, what_;
};

[[noreturn]] void fail(std::string message, std::string place = "", std::string hint = "");
// A row of a matrix holds NaN or infinity. `what` names the matrix ("database", "features").
[[noreturn]] void fail_not_finite(const char* what, size_t row);

// Called by FUNGI_ASSERT; throws std::logic_error with the expression and its position.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace fungi

// A promise between our own functions. Checked in every build: each use stands outside inner loops.
#define FUNGI_ASSERT(condition) \
  ((condition) ? void(0) : ::fungi::assertion_failed(#condition, __FILE__, __LINE__))
