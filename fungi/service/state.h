// SPDX-License-Identifier: Apache-2.0
// What a service holds: its stores, its threads, the two queues.
// Internal to this room.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>

#include "fungi/service/batch_queue.h"
#include "fungi/service/holding.h"
#include "fungi/service/metrics.h"
#include "fungi/service/parse.h"

namespace fungi {

struct Service::State {
  using Json = nlohmann::ordered_json;
  using Gone = std::function<bool()>;
  using Snapshot = std::shared_ptr<const service::Opened>;

  explicit State(ServiceOptions from);

  service::Holding& holding(const std::string& name) const;  // Refused (404)

  // Features of samples, one row each, the blocks side by side. Computed with all others that ask
  // meanwhile. Refused: 422 where a sample cannot be used, 429, 499 where `gone` said so.
  Matrix<float> compute(const Snapshot& opened, std::vector<Question> samples,
                        const std::vector<StoreBlock>& blocks, const Gone& gone);
  // The nearest rows of one vector, or of a row (`row`, then the vector is not looked at).
  struct Target {
    Matrix<float> vector;
    std::optional<size_t> row = {};
  };
  Neighbours search(const Snapshot& opened, std::shared_ptr<const Database> database,
                    Target target, size_t k, const std::vector<size_t>& classes,
                    const SearchOptions& options, const Gone& gone);

  // Answers that take long and change with the store alone: the last ones are kept.
  std::string remembered(const std::string& key, const std::function<std::string()>& make);

  ServiceOptions options;
  Pool computing, searching, drawing;
  std::vector<std::string> notes;
  std::vector<std::unique_ptr<service::Holding>> holdings;
  service::Metrics metrics;
  std::atomic<bool> draining = false;
  std::atomic<uint64_t> computed = 0, passes = 0;

 private:
  void run_samples(const service::Jobs& jobs);
  void run_searches(const service::Jobs& jobs);

  std::mutex answers_mutex_, making_;
  std::atomic<size_t> making_count_ = 0;
  std::list<std::pair<std::string, std::string>> answers_;  // used last comes first

 public:
  // Last, since their threads use all of the above.
  service::BatchQueue samples, searches;
};

namespace service {

using Json = Service::State::Json;

// For JSON: a byte that is no UTF-8 is U+FFFD.
std::string dump(const Json& value);
Json row_json(const Database& rows, const Samples* samples, size_t row);

// One function for each path; Refused and Error are answered by the caller.
WebAnswer answer_stores(Service::State& state);
WebAnswer answer_models(Service::State& state);
WebAnswer answer_rows(Service::State& state, const WebRequest& request);
WebAnswer answer_row(Service::State& state, const WebRequest& request, std::string_view rest);
WebAnswer answer_classes(Service::State& state, const WebRequest& request);
WebAnswer answer_search(Service::State& state, const WebRequest& request);
WebAnswer answer_embeddings(Service::State& state, const WebRequest& request);
WebAnswer answer_map(Service::State& state, const WebRequest& request);
WebAnswer answer_gains(Service::State& state, const WebRequest& request);

}  // namespace service
}  // namespace fungi
