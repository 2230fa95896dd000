// SPDX-License-Identifier: Apache-2.0
// A server on loopback that speaks as a language model's, good or bad.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/command.h"

namespace fungi::test {

inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

// language_model.py, for as long as this lives.
class LanguageModel {
 public:
  explicit LanguageModel(const std::string& mode) {
    child_ = ::fork();
    if (child_ == 0) {
      ::execlp("python3", "python3", "tests/app/language_model.py", folder_.path().c_str(),
               mode.c_str(), nullptr);
      ::_exit(127);
    }
    for (size_t i = 0; i < 4000 && !std::filesystem::exists(folder_ / "port"); ++i)
      sleep_a_little();
  }
  ~LanguageModel() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  std::string endpoint() const { return "http://127.0.0.1:" + read_file(folder_ / "port") + "/v1"; }
  std::vector<nlohmann::json> log() const {
    return std::filesystem::exists(folder_ / "log") ? json_lines(folder_ / "log")
                                                    : std::vector<nlohmann::json>();
  }

 private:
  TemporaryFolder folder_;
  pid_t child_;
};

}  // namespace fungi::test
