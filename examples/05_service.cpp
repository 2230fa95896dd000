// SPDX-License-Identifier: Apache-2.0
// What `fungi serve` does, in a program of yours: a store is opened (and made first where there is
// none) and asked, by the program itself and, where this build can listen, through a port.
// 05_service MODEL PICTURES STORE [key=value ...]
#include <cstdio>

#include "fungi/fungi.h"

namespace {

void make_store(const char* model, const char* pictures, const char* store,
                fungi::BackboneOptions options, fungi::Pool& pool) {
  fungi::ExtractorOptions extract;
  extract.objectives = {"kl", "dino"};
  auto extractor = fungi::Extractor::open(model, std::move(extract), pool, std::move(options));
  fungi::StoreWriter writer(store, extractor.spec());
  fungi::extract_to_store(extractor, *fungi::open_dataset(pictures), writer);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4)
    return std::fprintf(stderr, "usage: 05_service MODEL PICTURES STORE [key=value ...]\n"), 2;
  fungi::BackboneOptions options;
  for (int i = 4; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  fungi::Pool pool;
  if (!fungi::is_store(argv[3])) make_store(argv[1], argv[2], argv[3], options, pool);

  fungi::Service service({.stores = {{.path = argv[3], .data = argv[2]}}});
  // Of row 0, by the embedding and with all gradients: any path of /openapi.json, from any thread.
  const fungi::WebAnswer found =
      service.answer({.method = "POST",
                      .path = "/v1/search",
                      .content_type = "application/json",
                      .body = R"({"row": 0, "k": 3, "features": ["embedding", "all"]})"});
  std::printf("%d\n%s\n", found.status, found.body.c_str());
  if (found.status != 200) return 1;
  if (fungi::have_server()) {
    fungi::Server server(service, {});  // a free port of 127.0.0.1
    std::printf("%s\n", server.url().c_str());
  }  // whoever has asked is answered, then it ends
  return 0;
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
