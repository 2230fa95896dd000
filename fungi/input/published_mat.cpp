// SPDX-License-Identifier: Apache-2.0
// Published sets of pictures whose lists are MATLAB files: Flowers-102, Stanford Cars.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/input/mat_file.h"
#include "fungi/input/published_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

// setid.mat has the numbers of the pictures of each split, imagelabels.mat the class of each
// picture; both count from 1. Names of the classes stand in neither.
PublishedList list_flowers(const fs::path& root, const std::string& split) {
  const fs::path labels_file = root / "imagelabels.mat", split_file = root / "setid.mat";
  const std::vector<int64_t> labels = MatFile(labels_file).numbers("labels");
  const char* variable = split == "train" ? "trnid" : split == "val" ? "valid" : "tstid";
  PublishedList list{.below = "jpg"};
  for (const int64_t picture : MatFile(split_file).numbers(variable)) {
    if (picture < 1 || size_t(picture) > labels.size())
      fail(fmt::format("'{}' names picture {}, and imagelabels.mat has {}", variable, picture,
                       labels.size()),
           split_file.string(), "unpack the archive of the data set again");
    const int64_t label = labels[size_t(picture) - 1];
    if (label < 1 || label > 102)
      fail(fmt::format("expected classes from 1 to 102, found {} for picture {}", label, picture),
           labels_file.string(), "fetch the file again");
    list.samples.push_back({fmt::format("image_{:05}.jpg", picture), int(label) - 1});
  }
  return list;
}

// The devkit's annotations with a file for each split, or the one file of both, cars_annos.mat.
PublishedList list_cars(const fs::path& root, const std::string& split) {
  const bool train = split == "train", together = is_file(root / "cars_annos.mat");
  fs::path file = root / "cars_annos.mat", names = file;
  if (!together) {
    names = root / "devkit/cars_meta.mat";
    file = root / (train ? "devkit/cars_train_annos.mat" : "cars_test_annos_withlabels.mat");
    if (!train && !is_file(file)) file = root / "devkit/cars_test_annos_withlabels.mat";
  }
  PublishedList list{.class_names = MatFile(names).texts("class_names")};
  const MatFile annotations(file);
  const auto labels = annotations.field_numbers("annotations", "class");
  const auto files =
      annotations.field_texts("annotations", together ? "relative_im_path" : "fname");
  const auto is_test = together ? annotations.field_numbers("annotations", "test")
                                : std::vector<int64_t>(labels.size(), train ? 0 : 1);
  for (size_t i = 0; i < labels.size(); ++i) {
    if ((is_test.at(i) == 0) != train) continue;
    const std::string place = fmt::format("{}, annotation {}", file.string(), i + 1);
    if (labels[i] < 1 || size_t(labels[i]) > list.class_names.size())
      fail(fmt::format("expected classes from 1 to {}, found {}", list.class_names.size(),
                       labels[i]),
           place, "fetch the file again");
    list.samples.push_back({inside_path(files.at(i), place), int(labels[i]) - 1});
  }
  if (together) return list;
  list.below = train ? "cars_train" : "cars_test";
  if (is_folder(root / list.below / list.below)) list.below += "/" + list.below;  // as Kaggle packs
  return list;
}

}  // namespace

std::vector<PublishedReader> mat_readers() {
  return {
      {.set = {.key = "flowers",
               .title = "Flowers-102",
               .classes = 102,
               .splits = {{"train", 1020, 10, 10}, {"val", 1020, 10, 10}, {"test", 6149, 20, 238}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "setid.mat") && is_folder(root / "jpg");
           },
       .list = list_flowers,
       .inside = {"flowers-102"}},
      {.set = {.key = "cars",
               .title = "Stanford Cars",
               .classes = 196,
               .splits = {{"train", 8144, 24, 68}, {"test", 8041, 24, 68}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "devkit/cars_train_annos.mat") ||
                    is_file(root / "cars_annos.mat");
           },
       .list = list_cars,
       .inside = {"stanford_cars"}},
  };
}

}  // namespace fungi::dataset
