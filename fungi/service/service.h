// SPDX-License-Identifier: Apache-2.0
// Neighbours and features as a service: stores are opened once and watched, models are loaded once,
// and questions that arrive together are computed together. A Server (server.h) puts it on a port;
// a program of yours may ask it without one. Safe to share between threads.
//
//   Service service({.stores = {{.path = "train", .data = "pictures/train"}}});
//   WebAnswer found = service.answer({.method = "POST", .path = "/v1/search",
//                                     .content_type = "application/json",
//                                     .body = R"({"row": 0, "features": ["embedding", "all"]})"});
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/input/dataset.h"
#include "fungi/search/index.h"
#include "fungi/service/message.h"

namespace fungi {

// A store or an index.
struct ServedStore {
  std::filesystem::path path;
  std::string name = {};             // how requests call it; empty: the name of the folder
  std::filesystem::path model = {};  // where it is now; empty: where it was
  std::filesystem::path data = {};   // the data set it was made of, to show samples; empty: none
  DatasetOptions data_options = {};  // columns of texts, split, hop
  size_t most_pixels = 50'000'000;   // of a sample that is shown
};

struct ServiceOptions {
  std::vector<ServedStore> stores;
  unsigned threads = default_threads();  // that compute, and as many that search
  size_t memory = size_t{2} << 30;       // bytes of rows that stay in memory, for each features
  size_t waiting = 256;                  // samples that may wait to be computed
  size_t batch = 64;                     // samples of one pass
  size_t most_pixels = 50'000'000;       // of a picture that is asked for
};

// One question: a row, or a sample as the rows were made of.
struct Question {
  enum class Kind { row, image, text, sound } kind = Kind::row;
  size_t row = 0;
  std::string id = {};     // of a sample: the name that its random crops are drawn by
  std::string bytes = {};  // of a file, or the text
};

struct SearchRequest {
  std::string store = {};  // empty: the first
  Question question;
  std::vector<std::string> features = {""};  // one search each; "": what the store means
  size_t k = 8;
  std::vector<std::string> classes = {};  // only rows of these; none: all
  SearchOptions search = {};
};

class Service {
 public:
  // Error where a store cannot be opened. A model that is not there is a note: rows can be searched
  // without.
  explicit Service(ServiceOptions options);
  ~Service();
  Service(const Service&) = delete;

  const std::vector<std::string>& notes() const;  // what a user should know
  size_t stores() const;
  size_t waiting() const;  // samples in the queue

  // Any request of openapi.json. Never throws: what is wrong is an answer with a status and a
  // sentence.
  WebAnswer answer(const WebRequest& request);
  // An error as every answer has it.
  static WebAnswer refuse(int status, const std::string& sentence, const std::string& hint);

  // Whoever holds a port tells how many connections there are, and what was answered, for /metrics.
  void count_connections(std::function<size_t()> count);
  void log(const WebRequest& request, const WebAnswer& answer, double seconds);
  // Whether whoever holds the port is about to give it up, as /healthz then says.
  void drain(bool draining = true);
  bool draining() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace fungi
