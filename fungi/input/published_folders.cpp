// SPDX-License-Identifier: Apache-2.0
// Published sets of pictures that are folders of classes: EuroSAT, ImageNet-1K, ImageNet-100.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fungi/base/error.h"
#include "fungi/base/stratified.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/mat_file.h"
#include "fungi/input/published_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEuroSat[] = {"AnnualCrop", "Forest",  "HerbaceousVegetation", "Highway",
                                    "Industrial", "Pasture", "PermanentCrop",        "Residential",
                                    "River",      "SeaLake"};

bool is_eurosat(const fs::path& root) {
  return std::all_of(std::begin(kEuroSat), std::end(kEuroSat),
                     [&](const char* name) { return is_folder(root / name); });
}

// There is no official split. The paper's: StratifiedShuffleSplit(train_size=0.8, random_state=42)
// over torchvision's order, in the order that it gives, which decides the five shots.
PublishedList list_eurosat(const fs::path& root, const std::string& split) {
  PublishedList all = list_class_folders(root);
  const size_t first = size_t(std::floor(0.8 * double(all.samples.size())));
  std::vector<uint32_t> class_of;
  std::map<uint32_t, size_t> sizes;
  for (const PublishedSample& sample : all.samples)
    class_of.push_back(uint32_t(sample.label)), ++sizes[class_of.back()];
  for (const auto& [label, size] : sizes)
    if (size < 2 || sizes.size() != std::size(kEuroSat) || first < sizes.size() ||
        all.samples.size() - first < sizes.size())
      fail(fmt::format("expected pictures of ten classes, enough to split each, found {} of '{}' "
                       "and {} classes",
                       size, all.class_names[label], sizes.size()),
           root.string(), "unpack the archive of the data set again");
  const StratifiedRows rows = stratified_shuffle(class_of, sizes.size(), first, 42);
  PublishedList list{.class_names = std::move(all.class_names)};
  for (const size_t i : split == "train" ? rows.first : rows.second)
    list.samples.push_back(std::move(all.samples[i]));
  return list;
}

// ImageNet as its authors' archives unpack beside the devkit, or as Kaggle packs it.
struct ImageNet {
  explicit ImageNet(const fs::path& root) {
    const bool kaggle = is_folder(root / "ILSVRC/Data/CLS-LOC");
    below = kaggle ? "ILSVRC/Data/CLS-LOC/" : "";
    for (const char* name : {"ILSVRC2012_devkit_t12", "devkit"})
      if (is_file(root / name / "data/ILSVRC2012_validation_ground_truth.txt"))
        devkit = root / name / "data";
    if (is_file(root / "LOC_val_solution.csv")) solution = root / "LOC_val_solution.csv";
    mapping = root / "LOC_synset_mapping.txt";
  }

  std::string below;  // of the folders train and val, below the root
  fs::path devkit, solution, mapping;

  // Of each class its WordNet id, sorted: the place is the number. By the devkit's number, from 1.
  std::map<size_t, std::string> synsets() const {
    std::map<size_t, std::string> of;
    const MatFile meta(devkit / "meta.mat");
    const auto numbers = meta.field_numbers("synsets", "ILSVRC2012_ID"),
               children = meta.field_numbers("synsets", "num_children");
    const auto names = meta.field_texts("synsets", "WNID");
    for (size_t i = 0; i < names.size(); ++i)
      if (children.at(i) == 0 && numbers.at(i) > 0) of[size_t(numbers[i])] = names[i];
    return of;
  }

  std::vector<std::string> classes() const {
    std::vector<std::string> names;
    if (!devkit.empty())
      for (const auto& [number, name] : synsets()) names.push_back(name);
    else
      for (const ListLine& line : list_lines(mapping))
        names.push_back(list_words(line, 1, "synset")[0].substr(0, 9));
    std::sort(names.begin(), names.end());
    return names;
  }

  // The class of each validation picture by its name without ending.
  std::map<std::string, std::string> truth() const {
    std::map<std::string, std::string> of;
    if (!devkit.empty()) {
      const std::map<size_t, std::string> names = synsets();
      size_t picture = 0;
      for (const ListLine& line : list_lines(devkit / "ILSVRC2012_validation_ground_truth.txt")) {
        const auto at = names.find(list_number(line.text, 1, 1u << 16, line.place));
        if (at == names.end())
          fail(fmt::format("class {} is not in meta.mat", line.text), line.place,
               "unpack the devkit again");
        of[fmt::format("ILSVRC2012_val_{:08}", ++picture)] = at->second;
      }
      return of;
    }
    for (const ListLine& line : list_lines(solution)) {
      const size_t comma = line.text.find(',');
      if (line.text.starts_with("ImageId")) continue;
      if (comma == std::string::npos)
        fail(fmt::format("expected 'picture,class ...', found '{}'", line.text), line.place,
             "fetch the list again");
      of[line.text.substr(0, comma)] =
          line.text.substr(comma + 1, line.text.find(' ', comma) - comma - 1);
    }
    return of;
  }
};

bool has_folders(const fs::path& folder) {
  for (const fs::directory_entry& entry : list_folder(folder))
    if (entry.is_directory()) return true;
  return false;
}

PublishedList list_imagenet(const fs::path& root, const std::string& split) {
  const ImageNet place(root);
  const fs::path folder = root / (place.below + split);
  if (!is_folder(folder))
    fail(fmt::format("there is no folder {}{}", place.below, split), root.string(),
         "unpack the archive of that split there");
  PublishedList list;
  if (has_folders(folder)) {
    list = list_class_folders(folder);
    const std::vector<std::string> all = place.classes();
    const ClassNumbers numbers(all);
    for (PublishedSample& sample : list.samples)
      sample.label =
          numbers.of(list.class_names[size_t(sample.label)], (folder / sample.id).string());
    list.class_names = all;
  } else {
    list.class_names = place.classes();
    const ClassNumbers numbers(list.class_names);
    const auto truth = place.truth();
    for (const fs::directory_entry& file : list_folder(folder)) {
      const auto of = truth.find(file.path().stem().string());
      if (of != truth.end())
        list.samples.push_back(
            {file.path().filename().string(), numbers.of(of->second, file.path().string())});
      else if (is_image_extension(extension(file)))
        fail("the ground truth does not know the picture", file.path().string(),
             "keep the names of the archive, ILSVRC2012_val_00000001.JPEG and so on");
    }
  }
  list.below = place.below + split;
  return list;
}

// Kaggle's ImageNet-100: four folders for training, one for validation.
PublishedList list_imagenet100(const fs::path& root, const std::string& split) {
  std::map<std::string, std::vector<std::string>> of_class;
  for (const fs::directory_entry& part : list_folder(root)) {
    const std::string name = part.path().filename().string();
    if (!part.is_directory() || !name.starts_with("train.X")) continue;
    for (const fs::directory_entry& one : list_folder(part))
      if (one.is_directory()) of_class[one.path().filename().string()];
  }
  for (const fs::directory_entry& part : list_folder(root)) {
    const std::string name = part.path().filename().string();
    if (!part.is_directory() || !name.starts_with(split + ".X")) continue;
    const PublishedList found = list_class_folders(part);
    for (const PublishedSample& sample : found.samples)
      of_class[found.class_names[size_t(sample.label)]].push_back(name + "/" + sample.id);
  }
  PublishedList list;
  for (const auto& [name, files] : of_class) {
    for (const std::string& file : files)
      list.samples.push_back({file, int(list.class_names.size())});
    list.class_names.push_back(name);
  }
  return list;
}

}  // namespace

std::vector<PublishedReader> folder_readers() {
  return {
      {.set = {.key = "eurosat",
               .title = "EuroSAT RGB, the paper's split",
               .classes = 10,
               .splits = {{.name = "train",
                           .samples = 21600,
                           .counts = {2400, 2400, 2400, 2000, 2000, 1600, 2000, 2400, 2000, 2400}},
                          {.name = "test",
                           .samples = 5400,
                           .counts = {600, 600, 600, 500, 500, 400, 500, 600, 500, 600}}},
               .split_by_others = true},
       .lies_at = is_eurosat,
       .list = list_eurosat,
       .inside = {"2750", "EuroSAT_RGB", "eurosat/2750"}},
      {.set = {.key = "imagenet",
               .title = "ImageNet-1K",
               .classes = 1000,
               .splits = {{"train", 1281167, 732, 1300}, {"val", 50000, 50, 50}}},
       .lies_at =
           [](const fs::path& root) {
             const ImageNet place(root);
             return (!place.devkit.empty() || !place.solution.empty()) &&
                    (is_folder(root / (place.below + "train")) ||
                     is_folder(root / (place.below + "val")));
           },
       .list = list_imagenet},
      {.set = {.key = "imagenet100",
               .title = "ImageNet-100",
               .classes = 100,
               .splits = {{"train", 130000, 1300, 1300}, {"val", 5000, 50, 50}}},
       .lies_at =
           [](const fs::path& root) {
             return is_folder(root / "train.X1") && is_folder(root / "val.X");
           },
       .list = list_imagenet100},
  };
}

}  // namespace fungi::dataset
