// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace fungi::service {

void Metrics::count(const std::string& route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[{route, status}];
  Times& times = times_[route];
  for (size_t i = 0; i < kLimits.size(); ++i) times.within[i] += seconds <= kLimits[i];
  ++times.count;
  times.seconds += seconds;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out =
      "# HELP fungi_requests_total Answers by path and status\n# TYPE fungi_requests_total counter\n";
  for (const auto& [key, count] : answers_)
    out += fmt::format("fungi_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  out +=
      "# HELP fungi_request_seconds From the head of a request to its answer\n"
      "# TYPE fungi_request_seconds histogram\n";
  for (const auto& [route, times] : times_) {
    for (size_t i = 0; i < kLimits.size(); ++i)
      out += fmt::format("fungi_request_seconds_bucket{{path=\"{}\",le=\"{}\"}} {}\n", route,
                         kLimits[i], times.within[i]);
    out += fmt::format("fungi_request_seconds_bucket{{path=\"{}\",le=\"+Inf\"}} {}\n", route,
                       times.count);
    out += fmt::format("fungi_request_seconds_sum{{path=\"{}\"}} {}\n", route, times.seconds);
    out += fmt::format("fungi_request_seconds_count{{path=\"{}\"}} {}\n", route, times.count);
  }
  return out;
}

std::string escape_label(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '\\' || c == '"')
      out += '\\', out += c;
    else
      out += c == '\n' ? ' ' : c;
  return out;
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * size_t(::sysconf(_SC_PAGESIZE));
}

}  // namespace fungi::service
