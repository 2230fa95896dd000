// SPDX-License-Identifier: Apache-2.0
// An Error with the HTTP status that it is answered with.
// Internal to this room.
#pragma once

#include <string>
#include <utility>

#include "fungi/base/error.h"

namespace fungi::service {

class Refused : public Error {
 public:
  Refused(int status, std::string sentence, std::string hint = "", double retry_after = 0,
          std::string param = "")
      : Error(std::move(sentence), std::move(param), std::move(hint)),
        status_(status),
        retry_after_(retry_after) {}
  int status() const { return status_; }
  double retry_after() const { return retry_after_; }  // seconds; 0: not said

 private:
  int status_;
  double retry_after_;
};

// A request that cannot be understood: what of it, what was expected and found, what to do.
[[noreturn]] inline void refuse(std::string sentence, std::string param, std::string hint = "") {
  throw Refused(400, std::move(sentence), std::move(hint), 0, std::move(param));
}

}  // namespace fungi::service
