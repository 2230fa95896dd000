// SPDX-License-Identifier: Apache-2.0
// Features of a folder of classes in memory, and how well neighbours agree: 02_neighbours MODEL
// TRAIN TEST [key=value ...]
#include <cstdio>
#include <numeric>

#include "fungi/fungi.h"

namespace {

// Blocks side by side, each of unit length per row.
fungi::Matrix<float> join(fungi::StoreRows rows) {
  size_t width = 0, column = 0;
  for (const auto& block : rows.blocks) width += block.cols();
  fungi::Matrix<float> all(rows.blocks.front().rows(), width);
  for (auto& block : rows.blocks) {
    for (size_t i = 0; i < block.rows(); ++i) {
      fungi::normalise({block.row(i), block.cols()});
      std::copy_n(block.row(i), block.cols(), all.row(i) + column);
    }
    column += block.cols();
  }
  return all;
}

std::vector<int64_t> labels(const fungi::Dataset& data) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < data.size(); ++i) list.push_back(data.label(i));
  return list;
}

std::vector<size_t> everything(const fungi::Dataset& data) {
  std::vector<size_t> all(data.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace

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
    const auto x = join(extractor.extract(*train, everything(*train))),
               y = join(extractor.extract(*test, everything(*test)));
    const auto score = fungi::classify(x, labels(*train), y, labels(*test),
                                       {.k = std::min<size_t>(20, x.rows())}, pool);
    std::printf("embedding%s%s: %.1f %%\n", *objectives ? "+" : "", objectives,
                100 * score.accuracy);
  }
} catch (const fungi::Error& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
