// SPDX-License-Identifier: Apache-2.0
// Published sets of pictures whose splits are plain lists: CUB-200-2011, FGVC-Aircraft,
// Oxford-IIIT Pets, Food-101, DTD.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/input/image.h"
#include "fungi/input/published_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

// images.txt, classes.txt, image_class_labels.txt and train_test_split.txt, by numbers from 1.
PublishedList list_cub(const fs::path& root, const std::string& split) {
  constexpr size_t kMost = 1u << 20;
  PublishedList list;
  for (const ListLine& line : list_lines(root / "classes.txt")) {
    const auto words = list_words(line, 2, "number name");
    list_number(words[0], list.class_names.size() + 1, list.class_names.size() + 1, line.place);
    list.class_names.push_back(words[1]);
  }
  const auto numbers = [&](const char* file, const char* shape, size_t least, size_t most) {
    std::map<size_t, size_t> of;
    for (const ListLine& line : list_lines(root / file)) {
      const auto words = list_words(line, 2, shape);
      of[list_number(words[0], 1, kMost, line.place)] =
          list_number(words[1], least, most, line.place);
    }
    return of;
  };
  const auto labels = numbers("image_class_labels.txt", "number class", 1, list.class_names.size());
  const auto is_train = numbers("train_test_split.txt", "number 0-or-1", 0, 1);
  for (const ListLine& line : list_lines(root / "images.txt")) {
    const auto words = list_words(line, 2, "number path");
    const size_t number = list_number(words[0], 1, kMost, line.place);
    const auto label = labels.find(number), train = is_train.find(number);
    if (label == labels.end() || train == is_train.end())
      fail(fmt::format("picture {} has no line in {}", number,
                       label == labels.end() ? "image_class_labels.txt" : "train_test_split.txt"),
           line.place, "unpack the archive of the data set again");
    if ((train->second == 1) == (split == "train"))
      list.samples.push_back({inside_path(words[1], line.place), int(label->second) - 1});
  }
  list.below = "images";
  return list;
}

fs::path aircraft_data(const fs::path& root) {
  return is_file(root / "data/variants.txt") ? root / "data" : root;
}

PublishedList list_aircraft(const fs::path& root, const std::string& split) {
  const fs::path data = aircraft_data(root);
  PublishedList list;
  for (const ListLine& line : list_lines(data / "variants.txt"))
    list.class_names.push_back(list_words(line, 1, "name")[0]);
  const ClassNumbers numbers(list.class_names);
  for (const ListLine& line : list_lines(data / ("images_variant_" + split + ".txt"))) {
    const auto words = list_words(line, 2, "picture variant");
    list.samples.push_back(
        {inside_path(words[0] + ".jpg", line.place), numbers.of(words[1], line.place)});
  }
  list.below = data == root ? "images" : "data/images";
  return list;
}

// "Abyssinian_100 1 1 1": name, class from 1, species, breed. What precedes the last '_' is the
// name of the class.
PublishedList list_pets(const fs::path& root, const std::string& split) {
  PublishedList list;
  std::map<size_t, std::string> names;
  const char* file = split == "train" ? "trainval.txt" : "test.txt";
  for (const ListLine& line : list_lines(root / "annotations" / file)) {
    if (line.text.starts_with('#')) continue;
    const auto words = list_words(line, 3, "name class species breed");
    const size_t number = list_number(words[1], 1, 37, line.place);
    const std::string name = words[0].substr(0, words[0].rfind('_'));
    if (const auto [at, fresh] = names.emplace(number, name); !fresh && at->second != name)
      fail(fmt::format("class {} is '{}' here, and '{}' above", number, name, at->second),
           line.place, "unpack the archive of the data set again");
    list.samples.push_back({inside_path(words[0] + ".jpg", line.place), int(number) - 1});
  }
  for (const auto& [number, name] : names) {
    if (number != list.class_names.size() + 1)
      fail(fmt::format("class {} has no picture in {}", list.class_names.size() + 1, file),
           (root / "annotations" / file).string(), "unpack the archive of the data set again");
    list.class_names.push_back(name);
  }
  list.below = "images";
  return list;
}

// meta/train.txt has "class/number", and train.json the same by class.
std::vector<ListLine> food_names(const fs::path& meta, const std::string& split) {
  if (is_file(meta / (split + ".txt"))) return list_lines(meta / (split + ".txt"));
  const fs::path file = meta / (split + ".json");
  if (!is_file(file))
    fail(fmt::format("the lists {0}.txt and {0}.json are missing", split), meta.string(),
         "unpack the archive of the data set again");
  const std::vector<uint8_t> bytes = read_file_bytes(file);
  const nlohmann::json json =
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<ListLine> lines;
  if (json.is_object())
    for (const auto& [name, files] : json.items())
      for (const auto& one : files)
        if (one.is_string()) lines.push_back({one.get<std::string>(), file.string()});
  if (lines.empty())
    fail("expected {\"class\": [\"class/number\", ...], ...}", file.string(),
         "unpack the archive of the data set again");
  return lines;
}

PublishedList list_food(const fs::path& root, const std::string& split) {
  PublishedList list;
  for (const ListLine& line : list_lines(root / "meta/classes.txt"))
    list.class_names.push_back(list_words(line, 1, "class")[0]);
  std::sort(list.class_names.begin(), list.class_names.end());
  const ClassNumbers numbers(list.class_names);
  for (const ListLine& line : food_names(root / "meta", split)) {
    const std::string name = list_words(line, 1, "class/number")[0];
    list.samples.push_back({inside_path(name + ".jpg", line.place),
                            numbers.of(name.substr(0, name.find('/')), line.place)});
  }
  list.below = "images";
  return list;
}

// labels/train1.txt: the first of ten partitions is the one that papers report.
PublishedList list_dtd(const fs::path& root, const std::string& split) {
  const bool stated = split.find_first_of("0123456789") != std::string::npos;
  const fs::path file = root / "labels" / (split + (stated ? "" : "1") + ".txt");
  PublishedList list;
  std::vector<ListLine> lines = list_lines(file);
  std::set<std::string> names;
  for (ListLine& line : lines) {
    line.text = list_words(line, 1, "class/file")[0];
    if (line.text.find('/') == std::string::npos)
      fail(fmt::format("expected 'class/file', found '{}'", line.text), line.place,
           "unpack the archive of the data set again");
    names.insert(line.text.substr(0, line.text.find('/')));
  }
  list.class_names.assign(names.begin(), names.end());
  const ClassNumbers numbers(list.class_names);
  for (const ListLine& line : lines)
    list.samples.push_back({inside_path(line.text, line.place),
                            numbers.of(line.text.substr(0, line.text.find('/')), line.place)});
  list.below = "images";
  return list;
}

}  // namespace

std::vector<PublishedReader> list_readers() {
  return {
      {.set = {.key = "cub",
               .title = "CUB-200-2011",
               .classes = 200,
               .splits = {{"train", 5994, 29, 30}, {"test", 5794, 11, 30}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "train_test_split.txt") && is_file(root / "images.txt");
           },
       .list = list_cub,
       .inside = {"CUB_200_2011"}},
      {.set = {.key = "fgvc",
               .title = "FGVC-Aircraft",
               .classes = 100,
               .splits = {{"train", 3334, 33, 34},
                          {"val", 3333, 33, 34},
                          {"test", 3333, 33, 34},
                          {"trainval", 6667, 66, 67, true}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(aircraft_data(root) / "variants.txt") &&
                    is_folder(aircraft_data(root) / "images");
           },
       .list = list_aircraft,
       .inside = {"fgvc-aircraft-2013b"}},
      {.set = {.key = "pets",
               .title = "Oxford-IIIT Pets",
               .classes = 37,
               .splits = {{"train", 3680, 93, 100}, {"test", 3669, 88, 100}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "annotations/trainval.txt") && is_folder(root / "images");
           },
       .list = list_pets,
       .inside = {"oxford-iiit-pet"}},
      {.set = {.key = "food",
               .title = "Food-101",
               .classes = 101,
               .splits = {{"train", 75750, 750, 750}, {"test", 25250, 250, 250}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "meta/classes.txt") && is_folder(root / "images");
           },
       .list = list_food,
       .inside = {"food-101"}},
      {.set = {.key = "dtd",
               .title = "DTD",
               .classes = 47,
               .splits = {{"train", 1880, 40, 40}, {"val", 1880, 40, 40}, {"test", 1880, 40, 40}}},
       .lies_at =
           [](const fs::path& root) {
             return is_file(root / "labels/train1.txt") && is_folder(root / "images");
           },
       .list = list_dtd,
       .inside = {"dtd", "dtd/dtd"}},
  };
}

}  // namespace fungi::dataset
