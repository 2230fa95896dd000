// SPDX-License-Identifier: Apache-2.0
// What the openers of the data set kinds share; only dataset*.cpp include it.
// Internal to this room.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/text.h"
#include "fungi/input/dataset.h"

namespace fungi::dataset {

std::unique_ptr<Dataset> open_folder(const std::filesystem::path&, const DatasetOptions&);
// `folder`: where the files are; empty: beside the list.
std::unique_ptr<Dataset> open_list(const std::filesystem::path&, const DatasetOptions&,
                                   const std::filesystem::path& folder = {});
std::unique_ptr<Dataset> open_texts(const std::filesystem::path&, const DatasetOptions&);
std::unique_ptr<Dataset> open_sounds(const std::filesystem::path&, const DatasetOptions&);
std::unique_ptr<Dataset> open_tar(const std::filesystem::path&, const DatasetOptions&);
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path&, const DatasetOptions&);
// The folder, or the one in it that CIFAR's archives unpack into; empty: there is none.
std::filesystem::path unpacked_cifar(const std::filesystem::path& folder);
std::unique_ptr<Dataset> open_idx(const std::filesystem::path&, const DatasetOptions&);
// Null where no published layout lies there.
std::unique_ptr<Dataset> open_published(const std::filesystem::path&, const DatasetOptions&);

// Lower-case extension without the dot; "tar.gz" and its like count as one.
std::string extension(const std::filesystem::path& file);
bool is_image_extension(std::string_view extension);  // also of formats that we cannot decode
// Files of such a name are samples of the kind.
bool is_sample_extension(SampleKind samples, std::string_view extension);
struct SampleWords {
  const char *plural, *counted;  // "images" are expected, "3 picture(s)" are left out
};
SampleWords words_for(SampleKind samples);
// Dataset::key of a text, and of its sum fnv1a64().
std::string text_key(std::string_view text);
std::string sum_key(uint64_t sum);
bool is_tar_extension(std::string_view extension);
bool is_list_extension(std::string_view extension);
bool is_hidden(const std::filesystem::path& file);

// Entries of a folder, hidden ones left out, sorted by name (bytes). Hidden names of samples are
// added to the count. Ask an entry itself what it is (entry.is_directory(), not fs::is_directory):
// it knows from the listing, and only links and what a file system does not tell are looked up.
// Hundreds of thousands of lookups on a network disk would take minutes.
std::vector<std::filesystem::directory_entry> list_folder(const std::filesystem::path& folder,
                                                          size_t* hidden_samples = nullptr,
                                                          SampleKind samples = SampleKind::image);
std::optional<uint64_t> size_of_file(const std::filesystem::path& file);
bool contains_sample(const std::filesystem::path& folder, SampleKind samples);  // anywhere below
// "12 .txt and 3 .csv files": for messages about folders without images.
std::string describe(const std::map<std::string, size_t>& by_extension);

// Columns of a list of texts, where there is none.
bool states_columns(const DatasetOptions& options);
[[noreturn]] void refuse_columns(const char* why, const std::string& place,
                                 const char* or_else = "");

// Error when a split is asked of a single file, which has none.
void refuse_split(const std::filesystem::path& file, const std::string& split);

// Numbers for label texts ("" = none: -1). With `fixed_names`: places in that list, or, where a
// text is not in it, numbers below its size. Without: all whole numbers are taken as they are and
// have no names; other texts are numbered in sorted order. Returns the list of names. `place`:
// where a text stands, for an Error.
std::vector<std::string> number_labels(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& fixed_names,
                                       const std::function<std::string(size_t)>& place,
                                       std::vector<int>& labels);
inline std::vector<std::string> number_labels(const std::vector<std::string>& texts,
                                              const std::vector<std::string>& fixed_names,
                                              const std::string& place, std::vector<int>& labels) {
  return number_labels(
      texts, fixed_names, [&](size_t) { return place; }, labels);
}
// Lower-case column and key names that mean the file or the label.
bool is_path_name(std::string_view name);
bool is_label_name(std::string_view name);
bool is_fold_name(std::string_view name);
std::string known_names();  // all of them, for messages

}  // namespace fungi::dataset
