// SPDX-License-Identifier: Apache-2.0
// Where data sets with masks keep which file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/mask_dataset.h"
#include "fungi/input/published.h"
#include "fungi/input/text_records.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr const char* kVocLists = "ImageSets/Segmentation";

const Names& voc_names() {
  static const Names names = {
      "background", "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",
      "car",        "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",
      "motorbike",  "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};
  return names;
}

const Names& camvid_names() {
  static const Names names = {"sky",  "building", "pole", "road",       "pavement",  "tree",
                              "sign", "fence",    "car",  "pedestrian", "bicyclist", "unlabelled"};
  return names;
}

class FilePairs final : public MaskDataset {
 public:
  FilePairs(const fs::path& place, const MaskDatasetOptions& options) : place_(place) {
    class_names_ = options.class_names;
    if (options.ignore) ignore_ = *options.ignore;
    stated_ignore_ = options.ignore.has_value();
  }

  Image image(size_t i) const override { return read_image(files_.at(i).first); }
  Mask mask(size_t i) const override { return read_mask(files_.at(i).second); }

  void add(std::string id, fs::path picture, fs::path mask) {
    ids_.push_back(std::move(id));
    files_.emplace_back(std::move(picture), std::move(mask));
  }
  void know(const Names& names, std::optional<int> ignore = {}) {
    if (class_names_.empty()) class_names_ = names;
    if (ignore && !stated_ignore_) ignore_ = *ignore;
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  void leave_out(uint8_t number) { unmeasured_ = number; }
  void done() { finish(place_); }

 private:
  fs::path place_;
  std::vector<std::pair<fs::path, fs::path>> files_;
  bool stated_ignore_ = false;
};

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

// The files of a folder and those below it, by their path below it without extension; `ending` is
// what the names of masks have more.
std::map<std::string, fs::path> files_by_stem(const fs::path& folder, std::string_view ending,
                                              const fs::path& below = {}) {
  std::map<std::string, fs::path> out;
  for (const fs::directory_entry& entry : dataset::list_folder(folder / below)) {
    const fs::path name = below / entry.path().filename();
    if (entry.is_directory()) {
      out.merge(files_by_stem(folder, ending, name));
      continue;
    }
    if (!dataset::is_image_extension(dataset::extension(name))) continue;
    std::string stem = (below / name.stem()).string();
    if (stem.size() > ending.size() && stem.ends_with(ending))
      stem.resize(stem.size() - ending.size());
    const auto [other, is_new] = out.emplace(stem, folder / name);
    if (!is_new)
      fail(fmt::format("two files are called '{}': {} and {}", stem,
                       other->second.filename().string(), name.filename().string()),
           folder.string(), "a picture and its mask share their name: remove or rename one");
  }
  return out;
}

std::string few_of(const Names& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, names.size()); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > 3 ? text + ", ..." : text;
}

void pair_folders(FilePairs& data, const fs::path& images, const fs::path& masks,
                  std::string_view ending = "") {
  const auto pictures = files_by_stem(images, "");
  auto numbers = files_by_stem(masks, ending);
  Names alone;
  for (const auto& [stem, picture] : pictures) {
    const auto mask = numbers.find(stem);
    if (mask == numbers.end()) {
      alone.push_back(picture.filename().string());
      continue;
    }
    data.add(stem, picture, mask->second);
    numbers.erase(mask);
  }
  if (!alone.empty())
    data.note(
        fmt::format("{} picture(s) without a mask are left out: {}", alone.size(), few_of(alone)));
  alone.clear();
  for (const auto& [stem, mask] : numbers) alone.push_back(mask.filename().string());
  if (!alone.empty())
    data.note(
        fmt::format("{} mask(s) without a picture are left out: {}", alone.size(), few_of(alone)));
}

std::string folders_in(const fs::path& folder, std::string_view without = "") {
  Names names;
  if (is_folder(folder))
    for (const fs::directory_entry& entry : dataset::list_folder(folder))
      if (const std::string name = entry.path().filename().string();
          entry.is_directory() && (without.empty() || !name.ends_with(without)))
        names.push_back(name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// The first of some names that is there.
std::string choose_split(const fs::path& root, const MaskDatasetOptions& options,
                         const Names& for_train, const Names& for_test,
                         const std::function<bool(const std::string&)>& is_there,
                         const std::string& found) {
  if (!options.split.empty()) {
    if (!is_there(options.split))
      fail(fmt::format("there is no split '{}', found {}", options.split, found), root.string(),
           "state one that is there with `split`");
    return options.split;
  }
  const bool train = options.role == MaskDatasetOptions::Role::train;
  for (const std::string& name : train ? for_train : for_test)
    if (is_there(name)) return name;
  fail(fmt::format("expected a split for {}, found {}", train ? "training" : "testing", found),
       root.string(), "state one that is there with `split`");
}

void read_voc(FilePairs& data, const fs::path& root, const MaskDatasetOptions& options) {
  const fs::path lists = root / kVocLists;
  std::string found;
  if (is_folder(lists))
    for (const fs::directory_entry& entry : dataset::list_folder(lists))
      if (dataset::extension(entry) == "txt")
        found += (found.empty() ? "" : ", ") + entry.path().stem().string();
  const auto list_of = [&](const std::string& name) { return lists / (name + ".txt"); };
  const std::string split = choose_split(
      root, options, {"trainaug", "train"}, {"val", "test"},
      [&](const std::string& name) {
        std::error_code unknown;
        return fs::is_regular_file(list_of(name), unknown);
      },
      found.empty() ? "no lists" : found);
  const bool aug = is_folder(root / "SegmentationClassAug");
  const fs::path masks = root / (aug ? "SegmentationClassAug" : "SegmentationClass");
  const dataset::TextFile file(list_of(split));
  dataset::TextRecords lines(file, {});
  size_t total = 0;
  Names missing;
  while (lines.next()) {
    // Some lists of trainaug have "/JPEGImages/X.jpg /SegmentationClassAug/X.png".
    std::string stem(lines.record().substr(0, lines.record().find_first_of(" \t\r")));
    stem = fs::path(stem).stem().string();
    const fs::path picture = root / "JPEGImages" / (stem + ".jpg"), mask = masks / (stem + ".png");
    std::error_code unknown;
    ++total;
    for (const fs::path& needed : {picture, mask})
      if (!fs::exists(needed, unknown)) missing.push_back(fs::relative(needed, root).string());
    data.add(stem, picture, mask);
  }
  if (!missing.empty())
    fail(fmt::format("{} of the files that the list '{}' names ({} pictures) are missing: {}",
                     missing.size(), split, total, few_of(missing)),
         root.string(),
         aug ? "fetch them, or state another list with `split`"
             : "trainaug needs the masks of SegmentationClassAug; or state another list with "
               "`split`");
  data.know(voc_names());
}

// objectInfo150.txt: a table whose last column names a class from 1 on. 0 is everything else.
Names ade_names(const fs::path& file) {
  Names names{"other"};
  std::error_code unknown;
  if (!fs::exists(file, unknown)) return {};
  const dataset::TextFile text(file);
  dataset::TextRecords lines(text, {});
  for (bool first = true; lines.next(); first = false) {
    const std::string_view line = lines.record();
    if (!first) names.emplace_back(line.substr(line.rfind('\t') + 1));
  }
  for (std::string& name : names) name.resize(std::min(name.find_first_of(",;\r"), name.size()));
  std::map<std::string, int> times;  // some names stand for two classes
  for (std::string& name : names)
    if (const int time = ++times[name]; time > 1) name += fmt::format(" ({})", time);
  return names;
}

void read_ade20k(FilePairs& data, const fs::path& root, const MaskDatasetOptions& options) {
  const std::string split = choose_split(
      root, options, {"training", "train"}, {"validation", "val"},
      [&](const std::string& name) { return is_folder(root / "images" / name); },
      folders_in(root / "images"));
  pair_folders(data, root / "images" / split, root / "annotations" / split);
  Names names = ade_names(root / "objectInfo150.txt");
  if (names.empty()) {
    names.push_back("other");
    for (int c = 1; c <= 150; ++c) names.push_back(fmt::format("class {}", c));
  }
  data.know(names);
  data.leave_out(0);
}

void read_camvid(FilePairs& data, const fs::path& root, const MaskDatasetOptions& options) {
  if (is_folder(root / "labels")) {
    pair_folders(data, root / "images", root / "labels", "_P");
    std::error_code unknown;
    Names names;
    if (fs::exists(root / "codes.txt", unknown)) names = read_class_names(root / "codes.txt");
    const auto none = std::find(names.begin(), names.end(), "Void");
    data.know(names, none == names.end() ? std::optional<int>() : int(none - names.begin()));
    return;
  }
  const std::string split = choose_split(
      root, options, {"train"}, {"test", "val"},
      [&](const std::string& name) {
        return is_folder(root / name) && is_folder(root / (name + "annot"));
      },
      folders_in(root, "annot"));
  pair_folders(data, root / split, root / (split + "annot"));
  data.know(camvid_names(), int(camvid_names().size()) - 1);
}

void read_list(FilePairs& data, const fs::path& list) {
  const dataset::TextFile file(list);
  dataset::Dialect dialect{dataset::TextFormat::quoted, ','};
  if (dataset::extension(list) == "tsv") dialect.delimiter = '\t';
  dataset::TextRecords rows(file, dialect);
  size_t picture = 0, mask = 1;
  for (bool first = true; rows.next(); first = false) {
    const Names cells = dataset::cells_of(rows.record(), dialect, rows.place());
    if (first && !dataset::is_image_extension(dataset::extension(cells.front()))) {
      const auto column = [&](const std::set<std::string>& names) {
        size_t at = 0;
        while (at < cells.size() && !names.count(lower(cells[at]))) ++at;
        return at;
      };
      picture = column({"image", "picture", "path", "file", "filename", "img"});
      mask = column({"mask", "label", "labels", "annotation", "segmentation"});
      if (std::max(picture, mask) >= cells.size())
        fail("the first line names no column for the picture, or none for the mask", list.string(),
             "name them 'image' and 'mask', or begin with the first pair");
      continue;
    }
    if (std::max(picture, mask) >= cells.size() || cells[picture].empty() || cells[mask].empty())
      fail("expected a picture and a mask in each row", rows.place(),
           "leave out pictures without a mask");
    data.add(fs::path(cells[picture]).replace_extension().string(),
             list.parent_path() / cells[picture], list.parent_path() / cells[mask]);
  }
}

MaskLayout layout_of(const fs::path& root) {
  if (!is_folder(root)) {
    const std::string kind = dataset::extension(root);
    if (kind == "csv" || kind == "tsv") return MaskLayout::list;
    fail("expected a folder, or a CSV or TSV file of picture and mask, found another file",
         root.string(), "give one of these");
  }
  if (is_folder(root / "JPEGImages")) return MaskLayout::voc;
  if (is_folder(root / "images") && is_folder(root / "annotations")) return MaskLayout::ade20k;
  if (is_folder(root / "images") && is_folder(root / "labels")) return MaskLayout::camvid;
  for (const char* split : {"train", "val", "test"})
    if (is_folder(root / split) && is_folder(root / (std::string(split) + "annot")))
      return MaskLayout::camvid;
  return MaskLayout::folders;
}

}  // namespace

fs::path unpacked_masks(const fs::path& path) {
  if (is_folder(path / "JPEGImages") || is_folder(path / "images")) return path;
  for (const char* inside : {"VOCdevkit/VOC2012", "VOC2012", "ADEChallengeData2016"})
    if (is_folder(path / inside)) return path / inside;
  return path;
}

std::unique_ptr<MaskDataset> open_mask_dataset(const fs::path& given,
                                               const MaskDatasetOptions& options) try {
  const fs::path path = unpacked_masks(given);
  if (!fs::exists(path)) fail("there is no such file or folder", path.string(), "check the path");
  if (options.ignore && *options.ignore > 255)
    fail(fmt::format("expected a value of 0 to 255, found {}", *options.ignore), "`ignore`",
         "a mask has one byte per pixel");
  auto data = std::make_unique<FilePairs>(path, options);
  const MaskLayout layout =
      options.layout == MaskLayout::automatic ? layout_of(path) : options.layout;
  switch (layout) {
    case MaskLayout::voc:
      read_voc(*data, path, options);
      break;
    case MaskLayout::ade20k:
      read_ade20k(*data, path, options);
      break;
    case MaskLayout::camvid:
      read_camvid(*data, path, options);
      break;
    case MaskLayout::list:
      read_list(*data, path);
      break;
    default: {
      const fs::path root = options.split.empty() ? path : path / options.split;
      for (const char* needed : {"images", "masks"})
        if (!is_folder(root / needed))
          fail(fmt::format("expected the folders images/ and masks/, found no {}/", needed),
               root.string(),
               "put pictures and masks there under the same names, or state the `layout`");
      pair_folders(*data, root / "images", root / "masks");
    }
  }
  data->done();
  return data;
} catch (const fs::filesystem_error& error) {
  fail(error.code().message(), error.path1().empty() ? given.string() : error.path1().string(),
       "check the path and its permissions");
}

}  // namespace fungi
