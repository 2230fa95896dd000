// SPDX-License-Identifier: Apache-2.0
// Models from a hub: their folders are fetched once, checked, and kept under FUNGI_HOME. Nothing
// else in the library uses a network by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

struct PullOptions {
  std::string endpoint = {};  // of the hub or a mirror; empty: HF_ENDPOINT, or else the hub's own
  std::string weights = {};   // which file; empty: safetensors first
  bool offline = false;       // only what this machine has, ours or the hub's own tools'
  size_t tries = 5;           // in a row without a byte
  double timeout = 60;        // seconds of silence that end a try
  double first_wait = 1, longest_wait = 60;  // seconds between tries; they double
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& file, size_t done, size_t total)> progress = {};  // bytes
  std::function<void(const std::string&)> note = {};
};

struct PulledFile {
  enum class From { hub, cache, there };  // cache: linked or copied from another folder
  std::string name;
  uint64_t bytes = 0;
  From from = From::hub;
};
const char* to_string(PulledFile::From from);

struct PullResult {
  std::string model, revision, commit;
  std::filesystem::path path;  // what to open: the folder, or of several weights in it the chosen
  std::vector<PulledFile> files;
  uint64_t bytes = 0, fetched = 0;  // of all files; what came over the network
  bool stopped = false;             // repeat it to go on
};

// ORG/NAME or ORG/NAME@REVISION. Errors: a name that is none, what the hub refuses, files that are
// not what it says they are, no libcurl in this build.
PullResult pull(const std::string& model, const PullOptions& options = {});

// A path as it is; of "hf:ORG/NAME" what was pulled, or fetched by the hub's own tools. Never asks
// a network: Error where it is not there, which says how to get it.
std::string pulled_model(const std::string& model);

}  // namespace fungi
