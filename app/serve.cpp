// SPDX-License-Identifier: Apache-2.0
// fungi serve STORE|INDEX ...: neighbours and features over HTTP, for programs and for the page.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli.h"
#include "app/text_columns.h"
#include "app/words.h"
#include "fungi/hub/pull.h"
#include "fungi/service/server.h"

namespace fungi::app {
namespace {

constexpr size_t kMega = size_t{1} << 20;

struct Arguments {
  std::vector<std::string> stores, models, data;
  std::string split, token_file, certificate, key;
  double hop = 0;
  ServiceOptions service;
  ServerOptions server;
  size_t body_limit = ServerOptions{}.body_limit / kMega;
  TextColumnsArguments columns;
  MemoryOption memory;
  ThreadsOption threads;
  bool json = false;
};

// One for all, or one for each store; "none" where it has none.
std::string of_store(const std::vector<std::string>& words, size_t store) {
  const std::string& word = words.empty()       ? ""
                            : words.size() == 1 ? words.front()
                                                : words[store];
  return word == "none" ? "" : word;
}

// "name=folder" calls it otherwise than its folder, unless there is a folder of that name.
ServedStore served(const Arguments& a, size_t i) {
  ServedStore store{.path = a.stores[i]};
  const size_t equals = a.stores[i].find('=');
  std::error_code unknown;
  if (equals != std::string::npos && equals > 0 && !std::filesystem::exists(store.path, unknown))
    store.name = a.stores[i].substr(0, equals), store.path = a.stores[i].substr(equals + 1);
  store.model = pulled_model(of_store(a.models, i));
  store.data = of_store(a.data, i);
  store.data_options.split = a.split;
  store.data_options.hop = a.hop;
  a.columns.apply(store.data_options);
  return store;
}

// Every connection is an open file.
void allow_many_connections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

int run(Arguments a) {
  for (const auto& [words, option] : {std::pair(&a.models, "-m"), {&a.data, "--data"}})
    if (words->size() > 1 && words->size() != a.stores.size()) {
      say("fungi: {} takes one word for all stores, or one for each: found {} for {} stores\n"
          "See fungi serve --help.\n",
          option, words->size(), a.stores.size());
      return kUsage;
    }
  allow_many_connections();
  const std::atomic<bool>& stop = stop_on_interrupt();
  for (size_t i = 0; i < a.stores.size(); ++i) a.service.stores.push_back(served(a, i));
  a.service.threads = a.threads.count();
  if (a.memory.bytes) a.service.memory = a.memory.bytes;
  a.server.token_file = a.token_file;
  a.server.certificate = a.certificate;
  a.server.key = a.key;
  a.server.body_limit = a.body_limit * kMega;
  Service service(std::move(a.service));
  for (const std::string& note : service.notes()) say("note: {}\n", shown(worded(note)));
  Server server(service, std::move(a.server));
  if (a.json)
    fmt::print("{}\n", nlohmann::json{{"url", server.url()}, {"stores", service.stores()}}.dump());
  else
    fmt::print("{}\n", server.url());
  std::fflush(stdout);
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (const size_t waiting = service.waiting()) say("{} samples wait: they are answered first\n", waiting);
  server.stop();
  return kOk;
}

}  // namespace

Verb add_serve(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "serve", "Serve stores or indices over HTTP: search, features in OpenAI's shape, and a page");
  auto a = std::make_shared<Arguments>();
  a->server.port = 8080;
  self->add_option("stores", a->stores,
                   "Stores or indices; name=FOLDER calls one otherwise than its folder")
      ->required();
  self->add_option("--data", a->data,
                   "The data set of the stores, to show samples: one for all, or one for each "
                   "('none': nothing)");
  self->add_option("--split", a->split, "The split of the data set");
  self->add_option("--hop", a->hop, "Seconds between the windows of sounds, as they were extracted");
  a->columns.add_to(*self);
  self->add_option("-m,--model", a->models,
                   "Where the model is now, or hf:ORG/NAME of one that was pulled: one for all, or one for each; "
                   "default: where it was");
  self->add_option("--listen", a->server.listen,
                   "The address to listen on; beyond this machine only with --token-file")
      ->capture_default_str();
  self->add_option("--port", a->server.port, "0 = a free one")->capture_default_str();
  self->add_option("--token-file", a->token_file,
                   "A file whose first line every request has to bring: Authorization: Bearer ...");
  self->add_option("--certificate", a->certificate, "For TLS: the certificate, and those above it (PEM)");
  self->add_option("--key", a->key, "For TLS: the private key of the certificate (PEM)");
  self->add_option("--allow-origin", a->server.origins,
                   "Origins whose pages may ask this server (CORS), such as https://example.org");
  self->add_option("--queue", a->service.waiting,
                   "Samples that may wait to be computed; more are answered with 429")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--batch", a->service.batch, "Samples that are computed together")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--body-limit", a->body_limit, "Megabytes of a request; larger ones get 413")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--connections", a->server.connections, "Connections at once")
      ->capture_default_str()
      ->type_name(kCount);
  a->memory.add_to(*self);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print the address as JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
