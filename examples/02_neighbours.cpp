// SPDX-License-Identifier: Apache-2.0
// Features of a folder of classes in memory, and how well neighbours agree: 02_neighbours MODEL
// TRAIN TEST [key=value ...]
#include <algorithm>
#include <cstdio>

#include "fungi/fungi.h"

int main(int argc, char** argv) try {
  if (argc < 4)
    return std::fprintf(stderr, "usage: 02_neighbours MODEL TRAIN TEST [key=value ...]\n"), 2;
  fungi::Pool pool;
  fungi::BackboneOptions options;
  for (int i = 4; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  const auto backbone = fungi::Backbone::open(argv[1], options, pool);
  const auto train = fungi::open_dataset(argv[2]);
  const auto test = fungi::open_dataset(argv[3], {.class_names = train->class_names()});
  for (const char* objectives : {"", "kl", "dino"}) {
    fungi::ExtractorOptions extract;
    extract.objectives.clear();
    if (*objectives) extract.objectives = {objectives};
    fungi::Extractor extractor(backbone, std::move(extract), pool);
    extractor.fit(*train);
    std::vector<fungi::StoreFailure> of_train, of_test;
    const auto x = fungi::extract_to_memory(extractor, *train, &of_train),
               y = fungi::extract_to_memory(extractor, *test, &of_test);
    if (!*objectives && of_train.size() + of_test.size() > 0)
      std::printf("%zu pictures could not be used, the first: %s\n",
                  of_train.size() + of_test.size(),
                  (of_train.empty() ? of_test : of_train)[0].reason.c_str());
    const auto score = fungi::classify(x.features, x.labels, y.features, y.labels,
                                       {.k = std::min<size_t>(20, x.ids.size())}, pool);
    std::printf("embedding%s%s: %.1f %%\n", *objectives ? "+" : "", objectives,
                100 * score.accuracy);
  }
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
