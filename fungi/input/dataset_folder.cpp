// SPDX-License-Identifier: Apache-2.0
// Folders of files: one folder per class, or all together (SPEC 5.1 data are of the first
// kind).
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <tuple>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::string top;     // first folder below the root; empty for loose files
  std::string folder;  // path of the file's folder below the root, with '/'
  std::string name;
};

class Walk {
 public:
  Walk(fs::path root, SampleKind samples) : root_(std::move(root)), samples_(samples) {}

  // Gathers the samples below `folder`. Links to folders are followed, except into a folder that is
  // being walked.
  void visit(const fs::path& folder, const std::string& top, const std::string& below) {
    struct stat status;
    if (::stat(folder.c_str(), &status) != 0)
      fail(fmt::format("cannot read the folder: {}", std::generic_category().message(errno)),
           folder.string());
    const auto self = std::make_pair(status.st_dev, status.st_ino);
    if (!inside_.insert(self).second) return;
    for (const fs::directory_entry& entry : list_folder(folder, &hidden, samples_)) {
      if (only_first && !found.empty()) break;
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      const bool regular = entry.is_regular_file(ignored);  // first: most are, one lookup for links
      if (!regular && entry.is_directory(ignored)) {
        visit(entry, top.empty() ? name : top, below.empty() ? name : below + "/" + name);
      } else if (!regular && entry.exists(ignored)) {
        ++special;  // to read a pipe may take forever
        ++others[extension(entry)];
      } else if (is_sample_extension(samples_, extension(entry))) {
        found.push_back({top, below, name});  // a dangling link, too: it fails when it is read
      } else {
        ++others[extension(entry)];
      }
    }
    inside_.erase(self);
  }
  void start() { visit(root_, "", ""); }

  bool only_first = false;  // stop at the first sample
  std::vector<Found> found;
  std::map<std::string, size_t> others;
  size_t special = 0;  // of those others: pipes, sockets and devices, whatever their names say
  size_t hidden = 0;   // samples among the hidden files; hidden folders are not entered

 private:
  fs::path root_;
  SampleKind samples_;
  std::set<std::pair<dev_t, ino_t>> inside_;
};

class FolderDataset final : public Dataset {
 public:
  FolderDataset(const fs::path& root, const DatasetOptions& options) : root_(root) {
    samples_ = options.samples, seconds_ = options.seconds;
    const std::string counted = words_for(samples_).counted;
    Walk walk(root, samples_);
    walk.start();
    ignored_ = std::move(walk.others);
    if (walk.special > 0)
      notes_.push_back(
          fmt::format("{} of what was left out are pipes, sockets or devices", walk.special));
    if (walk.hidden > 0)
      notes_.push_back(fmt::format("{} hidden {}, whose names begin with a dot, were left out",
                                   walk.hidden, counted));
    std::vector<Found>& found = walk.found;
    // torchvision: classes by name, then folders by their whole path, then files.
    const bool flat = options.kind == DatasetKind::flat;
    std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      return std::tie(a.top, a.folder, a.name) < std::tie(b.top, b.folder, b.name);
    });
    const bool labelled = !flat && std::any_of(found.begin(), found.end(),
                                               [](const Found& f) { return !f.top.empty(); });
    const auto is_loose = [](const Found& f) { return f.top.empty(); };
    const auto loose = std::count_if(found.begin(), found.end(), is_loose);
    if (options.kind == DatasetKind::classes && loose > 0) {
      if (!labelled)
        fail(fmt::format("expected a folder per class, found {} {} and none in a folder", loose,
                         counted),
             root.string(), "give the folder that holds the class folders, or `kind=flat`");
      std::erase_if(found, is_loose);
      notes_.push_back(
          fmt::format("{} {} lie outside the class folders and were left out", loose, counted));
    } else if (labelled && loose > 0) {
      notes_.push_back(fmt::format(
          "{} {} lie outside the class folders and have no label; `kind=classes` leaves them out",
          loose, counted));
    }
    if (labelled && look_like_splits(tops(found)))
      notes_.push_back(fmt::format(
          "folders that look like splits ({}) were taken for classes; `split` takes one of them",
          fmt::join(tops(found), ", ")));
    if (labelled) class_names_ = options.class_names.empty() ? tops(found) : options.class_names;
    for (const Found& f : found) {
      ids_.push_back(f.folder.empty() ? f.name : f.folder + "/" + f.name);
      labels_.push_back(labelled && !f.top.empty() ? class_number(f.top) : -1);
    }
    finish(labelled ? DatasetKind::classes : DatasetKind::flat, root);
  }

  std::vector<uint8_t> read(size_t i) const override { return read_sample(root_ / id(i)); }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return size_of_file(root_ / id(i));
  }
  fs::path file(size_t i) const override { return root_ / id(i); }

 private:
  // Names of the classes in order. A folder without any image, e.g. a store that was written beside
  // the class folders, is none: the others' numbers do not depend on it.
  static std::vector<std::string> tops(const std::vector<Found>& sorted) {
    std::vector<std::string> names;
    for (const Found& f : sorted)
      if (!f.top.empty() && (names.empty() || names.back() != f.top)) names.push_back(f.top);
    return names;
  }

  static bool look_like_splits(const std::vector<std::string>& names) {
    static const std::set<std::string> splits{"train", "test", "val", "valid", "validation"};
    return std::all_of(names.begin(), names.end(),
                       [](const std::string& name) { return splits.contains(name); });
  }

  int class_number(const std::string& name) {
    if (numbers_.empty())
      for (size_t k = 0; k < class_names_.size(); ++k) numbers_.emplace(class_names_[k], int(k));
    const auto at = numbers_.find(name);
    if (at == numbers_.end())
      fail(fmt::format("class folder '{}' is not among the {} given classes", name,
                       class_names_.size()),
           (root_ / name).string(), "use the class folders of the training split");
    return at->second;
  }

  fs::path root_;
  std::map<std::string, int> numbers_;
};

// One file is a data set of one sample.
class SingleFile final : public Dataset {
 public:
  SingleFile(const fs::path& path, const DatasetOptions& options) : file_(path) {
    samples_ = options.samples, seconds_ = options.seconds;
    ids_ = {path.filename().string()};
    labels_ = {-1};
    finish(DatasetKind::flat, path);
  }
  std::vector<uint8_t> read(size_t) const override { return read_sample(file_); }
  std::optional<uint64_t> stored_bytes(size_t) const override { return size_of_file(file_); }
  fs::path file(size_t) const override { return file_; }

 private:
  fs::path file_;
};

}  // namespace

bool contains_sample(const fs::path& folder, SampleKind samples) {
  Walk walk(folder, samples);
  walk.only_first = true;
  walk.start();
  return !walk.found.empty();
}

std::unique_ptr<Dataset> open_folder(const fs::path& path, const DatasetOptions& options) {
  if (!fs::is_directory(path)) {
    refuse_split(path, options.split);
    if (options.kind == DatasetKind::flat)
      return std::make_unique<SingleFile>(path, options);
    fail("expected a folder with one folder per class, found a file", path.string());
  }
  const fs::path root = options.split.empty() ? path : path / options.split;
  if (!fs::is_directory(root))
    fail(fmt::format("there is no folder '{}' for that split", options.split), path.string(),
         "give the folder of the split itself");
  return std::make_unique<FolderDataset>(root, options);
}

}  // namespace fungi::dataset
