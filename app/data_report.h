// SPDX-License-Identifier: Apache-2.0
// What lies in a folder of data: which published set, which splits, and what of them is missing or
// damaged.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli.h"

namespace fungi::app {

Verb add_data(CLI::App& parent, CLI::App*& self);  // data.cpp

struct ClassCount {
  std::string name;
  size_t here = 0, least = 0, most = 0;  // samples; officially
};

struct SplitReport {
  std::string name;
  size_t samples = 0;                             // that the lists name
  std::optional<size_t> official;                 // nothing: not a published set
  size_t classes = 0, smallest = 0, largest = 0;  // samples of a class that are there
  size_t missing = 0, empty = 0, damaged = 0;     // files
  std::vector<std::string> examples = {};         // of these, the first few
  std::vector<ClassCount> off = {};               // classes that have more or fewer than officially
  std::string error = {};                         // why the split cannot be read
  bool is_whole() const {
    return error.empty() && missing + empty + damaged == 0 && off.empty() &&
           (!official || *official == samples);
  }
};

struct DataReport {
  std::string key, title;  // of a published set; empty: none
  std::string kind;        // what a sample is, or of other folders the kind of data set
  std::filesystem::path root;
  std::vector<SplitReport> splits = {};
  std::vector<std::string> notes = {};
  bool is_whole() const;
};

// decode: look into every file, which takes a while; otherwise it is only asked whether it is
// there.
DataReport look_at_data(const std::filesystem::path& path, bool decode,
                        const std::function<void(size_t done, size_t total)>& progress);

}  // namespace fungi::app
