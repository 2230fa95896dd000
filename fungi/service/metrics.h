// SPDX-License-Identifier: Apache-2.0
// What was answered, as Prometheus reads it.
// Internal to this room.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace fungi::service {

class Metrics {
 public:
  void count(const std::string& route, int status, double seconds);
  std::string text() const;  // without what others know
  std::function<size_t()> connections;

 private:
  static constexpr std::array<double, 8> kLimits{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60};
  struct Times {
    std::array<uint64_t, kLimits.size()> within{};
    uint64_t count = 0;
    double seconds = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> answers_;
  std::map<std::string, Times> times_;
};

// Of a label's value.
std::string escape_label(const std::string& text);
// Bytes of this process in memory; 0 where the system does not say.
size_t resident_bytes();

}  // namespace fungi::service
