// SPDX-License-Identifier: Apache-2.0
// Two stores that can be compared: a training split, and a test split extracted like it, with the
// same heads and negatives and the same numbers of classes. Run again, it goes on where it was
// stopped, and adds what is new in the folders.
// 04_test_split MODEL TRAIN TEST OUTPUT [key=value ...]
#include <cstdio>

#include "fungi/fungi.h"

int main(int argc, char** argv) try {
  if (argc < 5)
    return std::fprintf(stderr, "usage: 04_test_split MODEL TRAIN TEST OUTPUT [key=value ...]\n"),
           2;
  fungi::Pool pool;
  fungi::BackboneOptions options;
  for (int i = 5; i < argc; ++i) {
    const std::string fact = argv[i];
    options.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  fungi::ExtractorOptions extract;
  extract.objectives = {"kl", "simclr:negatives=16"};
  const std::filesystem::path output = argv[4];
  std::filesystem::create_directories(output);
  const auto train = fungi::open_dataset(argv[2]), test = fungi::open_dataset(argv[3]);
  auto extractor = fungi::Extractor::open(argv[1], std::move(extract), pool, std::move(options));

  fungi::StoreWriter train_writer(output / "train", extractor.spec());
  fungi::extract_to_store(extractor, *train, train_writer);
  fungi::StoreWriter test_writer(output / "test", extractor.spec(), {.like = output / "train"});
  fungi::extract_to_store(extractor, *test, test_writer);

  const auto x = fungi::Store::open(output / "train").load(),
             y = fungi::Store::open(output / "test").load();
  const auto score = fungi::classify(x.features, x.labels, y.features,
                                     fungi::align_labels(x.classes, y), {.k = 5}, pool);
  std::printf("%zu and %zu rows, %.1f %% right\n", x.ids.size(), y.ids.size(),
              100 * score.accuracy);
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
