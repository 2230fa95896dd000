// SPDX-License-Identifier: Apache-2.0
// What the readers of published data sets share. Internal to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "fungi/input/published.h"

namespace fungi::dataset {

struct PublishedReader {
  PublishedSet set;
  bool (*lies_at)(const std::filesystem::path& root);
  // `split`: the official name, or with a partition behind it.
  PublishedList (*list)(const std::filesystem::path& root, const std::string& split);
  std::vector<const char*> inside = {};  // folders that archives unpack into
};

// The readers of published_lists.cpp, published_folders.cpp, published_mat.cpp,
// published_retrieval.cpp, published_texts.cpp.
std::vector<PublishedReader> list_readers();
std::vector<PublishedReader> folder_readers();
std::vector<PublishedReader> mat_readers();
std::vector<PublishedReader> retrieval_readers();
std::vector<PublishedReader> text_readers();

// A line of a list with its place, "FILE, line 3".
struct ListLine {
  std::string text;
  std::string place;
};
// Lines without their ends; empty ones are left out. Error where the file is missing.
std::vector<ListLine> list_lines(const std::filesystem::path& file);
// The words of a line; the last of `count` is all that is left. Error where there are fewer.
std::vector<std::string> list_words(const ListLine& line, size_t count, const char* shape);
// Error naming the place of what is no whole number from `least` to `most`.
size_t list_number(const std::string& word, size_t least, size_t most, const std::string& place);
// A name in a list as a path below the folder; Error where it leads out of it.
std::string inside_path(const std::string& name, const std::string& place);
// The place of a name in a list of classes; Error where it has none.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& names);
  int of(const std::string& name, const std::string& place) const;

 private:
  std::vector<std::pair<std::string, int>> numbers_;
};

bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
// Pictures of a folder of classes as torchvision's ImageFolder lists them, below `folder`.
PublishedList list_class_folders(const std::filesystem::path& folder);

}  // namespace fungi::dataset
