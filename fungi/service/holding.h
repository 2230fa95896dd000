// SPDX-License-Identifier: Apache-2.0
// A folder that is served: opened, watched, and opened anew when it has changed.
// Internal to this room.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "fungi/service/opened.h"
#include "fungi/service/samples.h"

namespace fungi::service {

class Holding {
 public:
  // Error where it is no store or index now. others: those that are held already.
  Holding(ServedStore source, size_t memory,
          const std::vector<std::shared_ptr<const Opened>>& others, Pool& pool);

  const std::string& name() const { return source_.name; }
  // As it lies there. One that is being written stays as it was before; Refused (503) where it has
  // gone.
  std::shared_ptr<const Opened> now();
  std::string trouble() const;  // empty: none
  // Null: no data set was given.
  const Samples* samples() const { return samples_.get(); }

 private:
  // Of the file that is written last: its time, size and number.
  using Mark = std::tuple<int64_t, int64_t, uint64_t, uint64_t, uint64_t>;
  Mark mark() const;  // of zeros: it is not there

  ServedStore source_;
  size_t memory_;
  Pool& pool_;
  std::unique_ptr<Samples> samples_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Opened> opened_;
  Mark seen_;
  std::string trouble_;
  bool gone_ = false;
  std::chrono::steady_clock::time_point looked_{};
  std::mutex opening_;
};

}  // namespace fungi::service
