// SPDX-License-Identifier: Apache-2.0
// Published sets of pictures to be found, not to be classified: revisited Oxford and Paris.
#include "fungi/input/published_parts.h"
#include "fungi/input/revisited.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

// The ground truth beside jpg/ names the pictures of both, without ending.
PublishedList list_revisited(const fs::path& truth_file, const std::string& split) {
  const RevisitedTruth truth = read_revisited(truth_file);
  PublishedList list{.below = "jpg"};
  for (const std::string& name : split == "database" ? truth.database : truth.queries)
    list.samples.push_back({inside_path(name, truth_file.string()) + ".jpg"});
  return list;
}

template <char City>
fs::path truth_at(const fs::path& root) {
  return root / (City == 'o' ? "gnd_roxford5k.pkl" : "gnd_rparis6k.pkl");
}

template <char City>
PublishedReader revisited(const char* key, const char* title, size_t database) {
  return {.set = {.key = key,
                  .title = title,
                  .splits = {{"database", database}, {"query", 70}}},
          .lies_at =
              [](const fs::path& root) {
                return is_file(truth_at<City>(root)) && is_folder(root / "jpg");
              },
          .list =
              [](const fs::path& root, const std::string& split) {
                return list_revisited(truth_at<City>(root), split);
              },
          .inside = {City == 'o' ? "roxford5k" : "rparis6k"}};
}

}  // namespace

std::vector<PublishedReader> retrieval_readers() {
  return {revisited<'o'>("roxford", "revisited Oxford", 4993),
          revisited<'p'>("rparis", "revisited Paris", 6322)};
}

}  // namespace fungi::dataset
