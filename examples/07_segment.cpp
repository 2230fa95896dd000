// SPDX-License-Identifier: Apache-2.0
// Segments a picture by the nearest patches of pictures with masks.
//
//   ./07_segment MODEL PAIRS PICTURE MASK.png FOLDER [FACT=VALUE]
//
// PAIRS holds images/ and masks/; the memory is kept in FOLDER, where the next run finds it.
#include <fungi/fungi.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s MODEL PAIRS PICTURE MASK.png FOLDER [FACT=VALUE]\n", argv[0]);
    return 2;
  }
  fungi::Pool pool;
  fungi::BackboneOptions backbone;
  if (argc > 6) {
    const std::string fact = argv[6];
    backbone.stated_facts[fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
  }
  fungi::PatchFeatures features =
      fungi::PatchFeatures::open(argv[1], {.height = 64, .width = 64}, pool, backbone);
  const auto pairs = fungi::open_mask_dataset(argv[2]);
  pairs->find_classes();
  const auto segmenter =
      fungi::Segmenter::build(std::move(features), *pairs, argv[5], {.memory = 4096}, pool);
  const fungi::Image picture = fungi::read_image(argv[3]);
  const fungi::Mask mask = segmenter->segment(picture, pool);
  fungi::write_mask(argv[4], mask);

  std::vector<size_t> pixels(segmenter->classes());
  for (const uint8_t number : mask.values) ++pixels[number];
  for (size_t c = 0; c < pixels.size(); ++c)
    std::printf("%s: %zu pixels\n", segmenter->class_name(c).c_str(), pixels[c]);
  return 0;
} catch (const fungi::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
