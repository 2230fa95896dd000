// SPDX-License-Identifier: Apache-2.0
// Data sets as they are downloaded: the layouts of their authors, of torchvision and of Kaggle,
// with the official splits. open_dataset() recognises them; what is here tells more about one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fungi/input/dataset.h"

namespace fungi {

struct PublishedSplit {
  std::string name;
  size_t samples = 0;          // officially
  size_t least = 0, most = 0;  // samples of a class, officially; 0: not known
  bool joined = false;         // made of others, as trainval: no part of everything
  std::vector<size_t> counts = {};  // of each class by number, where they are known
  // Whether so many samples of that class are as published, as far as it is known.
  bool agrees(size_t label, size_t samples) const;
};

struct PublishedSet {
  std::string key, title;
  SampleKind samples = SampleKind::image;
  size_t classes = 0;
  std::vector<PublishedSplit> splits;
  bool split_by_others = false;  // its authors left it whole: without a split it is a plain folder
  // The official split that a user means by a word ("validation", "dev" and "valid" are "val");
  // null where there is none.
  const PublishedSplit* split(const std::string& name) const;
};

struct PublishedSample {
  std::string id;  // of a file its path below PublishedList::below; of a text the line it begins in
  int label = -1;
  std::string text = {};
};

// A split as the lists of the data set tell it, whether its files are there or not.
struct PublishedList {
  std::vector<std::string> class_names = {};  // empty: the source gives bare numbers
  std::vector<PublishedSample> samples = {};
  std::string below = {};  // folder of the files, below the root
  std::vector<std::string> notes = {};
};

struct PublishedFolder {
  const PublishedSet* set = nullptr;
  std::filesystem::path root;  // the folder that was asked for, or the one in it that is meant

  // Error where a list is missing or damaged, names a file outside of the folder, or a class that
  // there is not. `split`: see DatasetOptions; of DTD also train2, the second partition. An Error
  // names the splits where there is none of that name, or none was asked for.
  PublishedList list(const std::string& split) const;

 private:
  PublishedList list_all() const;
};

// Nothing where no known layout of such samples lies at the path.
std::optional<PublishedFolder> find_published(const std::filesystem::path& path,
                                              SampleKind samples);

// Samples of the classes that the lines of a file name, as ImageNet-100 is ImageNet and a list of a
// hundred of its classes. They are numbered in their order in the data set, or by their places in
// `class_names`. Error where one is not there. `all` must have been opened without class names.
std::unique_ptr<Dataset> choose_classes(std::unique_ptr<Dataset> all,
                                        const std::filesystem::path& place,
                                        const std::vector<std::string>& only,
                                        const std::vector<std::string>& class_names = {});
// The lines of such a file. Error where there are none.
std::vector<std::string> read_class_list(const std::filesystem::path& file);

// The folder, or the one in it that archives of Pascal VOC and ADE20K unpack into.
std::filesystem::path unpacked_masks(const std::filesystem::path& path);

// All sets that find_published() knows.
const std::vector<PublishedSet>& published_sets();

}  // namespace fungi
