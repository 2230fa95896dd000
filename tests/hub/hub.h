// SPDX-License-Identifier: Apache-2.0
// hub_server.py for as long as this lives, a home of its own and no settings of the user's.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/command.h"

namespace fungi::test {

class Hub {
 public:
  Hub() {
    for (const char* name : {"FUNGI_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
                             "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT",
                             "XDG_CACHE_HOME", "http_proxy", "https_proxy", "all_proxy"})
      ::unsetenv(name);
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
    std::filesystem::create_directories(folder_ / "home");
    child_ = ::fork();
    if (child_ == 0) {
      ::execlp("python3", "python3", "tests/hub/hub_server.py", folder_.path().c_str(), nullptr);
      ::_exit(127);
    }
    for (size_t i = 0; i < 4000 && !std::filesystem::exists(folder_ / "ports"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ~Hub() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  std::string port() const {
    const std::string ports = read_file(folder_ / "ports");
    return ports.substr(0, ports.find(' '));
  }
  std::string endpoint() const { return "http://127.0.0.1:" + port(); }
  std::filesystem::path home() const { return folder_ / "home"; }
  std::filesystem::path kept(const std::string& model) const {
    return home() / ".cache/fungi/hub" / model;
  }
  void add(const std::string& model, const std::string& file, std::string_view bytes) {
    folder_.write("models/" + model + "/" + file, bytes);
  }
  // A model of the usual files.
  void add_model(const std::string& model, const std::string& weights = std::string(5000, 'w')) {
    add(model, "config.json", "{\"model_type\": \"vit\"}");
    add(model, "model.safetensors", weights);
    add(model, "pytorch_model.bin", "never wanted");
  }
  struct Asked {
    std::string what, token, range;
    bool second;
  };
  std::vector<Asked> log() const {
    std::vector<Asked> lines;
    std::istringstream in(read_file(folder_ / "log"));
    for (std::string line; std::getline(in, line);) {
      const auto one = nlohmann::json::parse(line);
      lines.push_back({one["asked"], one["token"], one["range"], one["second"]});
    }
    return lines;
  }
  void forget_log() const { std::filesystem::remove(folder_ / "log"); }
  bool was_asked() const { return std::filesystem::exists(folder_ / "log"); }

 private:
  TemporaryFolder folder_;
  pid_t child_;
};

}  // namespace fungi::test
