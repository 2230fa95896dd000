// SPDX-License-Identifier: Apache-2.0
// What a service does: a store is opened (and made first where there is none), and a picture that
// is in memory, not in a file, asks for its neighbours there. All that is made before the loop is
// made once; several threads may then ask, each in its turn.
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
  fungi::Pool pool;
  fungi::BackboneOptions options;
  for (int i = 4; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  if (!fungi::is_store(argv[3])) make_store(argv[1], argv[2], argv[3], options, pool);

  const auto store = fungi::Store::open(argv[3]);
  const auto index = fungi::FeatureIndex::build(store, {}, pool);
  fungi::Reopened reopened(index.record(), pool);
  for (const uint8_t brightness : {40, 200}) {  // pictures from a camera, a queue, a socket
    fungi::Image picture{64, 48, std::vector<uint8_t>(64 * 48 * 3, brightness)};
    const auto query = fungi::memory_dataset({"query"}, {std::move(picture)});
    const auto vectors =
        index.reduction().apply(reopened.rows(*query, index.reduction().blocks()), pool);
    const auto nearest = index.index().search(vectors, 3, pool);
    for (size_t i = 0; i < 3; ++i)
      std::printf("%zu. %s (%s)\n", i + 1, index.id(nearest.index(0, i)).c_str(),
                  index.class_name(nearest.index(0, i)).c_str());
  }
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
