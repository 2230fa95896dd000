// SPDX-License-Identifier: Apache-2.0
// The samples behind the rows, for people: encoded anew, never passed through as they lie on the
// disk. A row names a sample of the data set, never a file. Safe to share between threads.
// Internal to this room.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <unordered_map>

#include "fungi/input/dataset.h"
#include "fungi/service/service.h"
#include "fungi/store/manifest.h"

namespace fungi::service {

class Samples {
 public:
  // The data set of a store with such a manifest. Error where there is none.
  Samples(const ServedStore& source, const StoreManifest& manifest);

  bool texts() const { return options_.samples == SampleKind::text; }
  // Refused (404) where the sample has gone, lies outside of the data set's folder, or is of
  // another kind.
  WebAnswer thumbnail(const std::string& id, size_t side) const;
  WebAnswer sample(const std::string& id) const;
  std::optional<std::string> text(const std::string& id) const;  // nothing where it has gone

 private:
  struct Open {
    std::unique_ptr<Dataset> data;
    std::unordered_map<std::string, size_t> place;
  };
  std::shared_ptr<const Open> open() const;
  // A store that has grown has samples that are new here, too.
  std::pair<std::shared_ptr<const Open>, size_t> find(const std::string& id) const;
  Sample read(const std::string& id) const;

  std::filesystem::path path_, root_;
  DatasetOptions options_;
  DecodeOptions decode_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Open> open_;
  mutable std::chrono::steady_clock::time_point opened_{};
  mutable std::counting_semaphore<> places_;  // of samples in memory at once
};

}  // namespace fungi::service
