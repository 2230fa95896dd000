// SPDX-License-Identifier: Apache-2.0
// Sounds: folders, lists and archives of them, the layouts of ESC-50 and SpeechCommands, and files
// that are several samples each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/sound.h"

namespace fungi {

// Each file of a data set as several samples.
class SoundWindows final : public Dataset {
 public:
  SoundWindows(std::unique_ptr<Dataset> files, const std::filesystem::path& place, double window,
               double hop)
      : files_(std::move(files)), window_(window), hop_(hop > 0 ? hop : window) {
    samples_ = SampleKind::sound;
    class_names_ = files_->class_names();
    ignored_ = files_->ignored();
    notes_ = files_->notes();
    for (size_t i = 0; i < files_->size(); ++i)
      for (const double begin : begins(seconds_of(i))) {
        where_.push_back({i, begin});
        ids_.push_back(files_->id(i) + "@" + in_seconds(begin));
        labels_.push_back(files_->label(i));
      }
    finish(files_->kind(), place);
  }

  std::vector<uint8_t> read(size_t i) const override { return files_->read(at(i).file); }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    const auto& [file, begin] = at(i);
    return files_->decode_part(file, bytes, begin, window_, options);
  }
  size_t container(size_t i) const override { return files_->container(at(i).file); }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return files_->stored_bytes(at(i).file);
  }

 private:
  struct Where {
    size_t file;
    double begin;  // seconds
  };
  const Where& at(size_t i) const {
    id(i);  // an Error where there is none
    return where_[i];
  }

  // A file that cannot be read is one sample, which fails and says why.
  double seconds_of(size_t i) const try {
    const std::filesystem::path alone = files_->file(i);
    return alone.empty() ? sound_seconds(files_->read(i), files_->id(i)) : sound_seconds(alone);
  } catch (const Exhausted&) {
    throw;
  } catch (const Error&) {
    return 0;
  }

  // Until one of them reaches the end, which may be a rounded number of samples away.
  std::vector<double> begins(double seconds) const {
    constexpr double kMostWindows = 1e7;
    if (seconds / hop_ > kMostWindows)
      fail(fmt::format("windows {} seconds apart are too many of a sound of {} seconds", hop_,
                       seconds),
           "`hop`", "give a larger one");
    constexpr double kNothing = 1e-6;
    std::vector<double> out{0};
    for (double next = hop_; out.back() + window_ < seconds - kNothing && next < seconds - kNothing;
         next = double(out.size()) * hop_)
      out.push_back(next);
    return out;
  }

  // 12.0, 0.25
  static std::string in_seconds(double begin) {
    std::string text = fmt::format("{:.6f}", begin);
    while (text.ends_with('0') && text[text.size() - 2] != '.') text.pop_back();
    return text;
  }

  std::unique_ptr<Dataset> files_;
  double window_, hop_;
  std::vector<Where> where_;
};

namespace dataset {
namespace {

namespace fs = std::filesystem;

// SpeechCommands: a folder per word, and two lists that say which files are not for training.
class SpeechCommands final : public Dataset {
 public:
  SpeechCommands(const fs::path& root, const DatasetOptions& options) : root_(root) {
    samples_ = SampleKind::sound, seconds_ = options.seconds;
    const std::set<std::string> test = lines_of(root / kTest),
                                validation = lines_of(root / kValidation);
    std::vector<std::string> classes;
    std::vector<std::pair<std::string, size_t>> files;
    for (const fs::directory_entry& folder : list_folder(root)) {
      const std::string name = folder.path().filename().string();
      if (!folder.is_directory()) {
        if (name != kTest && name != kValidation) ++ignored_[extension(folder)];
        continue;
      }
      if (name == kNoise) {
        notes_.push_back(fmt::format("the folder '{}' is no class and was left out", kNoise));
        continue;
      }
      const size_t before = files.size();
      for (const fs::directory_entry& file : list_folder(folder))
        if (is_sample_extension(samples_, extension(file)))
          files.emplace_back(name + "/" + file.path().filename().string(), classes.size());
        else
          ++ignored_[extension(file)];
      if (files.size() > before) classes.push_back(name);
    }
    class_names_ = options.class_names.empty() ? classes : options.class_names;
    std::vector<int> numbers;
    number_labels(classes, class_names_, root.string(), numbers);
    for (const auto& [file, label] : files) {
      const char* split = test.contains(file)         ? "test"
                          : validation.contains(file) ? "validation"
                                                      : "train";
      if (!options.split.empty() && options.split != split) continue;
      ids_.push_back(file);
      labels_.push_back(numbers[label]);
    }
    if (options.split.empty())
      notes_.push_back(fmt::format(
          "{} and {} say which files are for what: `split` takes train, validation or test", kTest,
          kValidation));
    finish(DatasetKind::classes, root);
  }

  static bool lies_at(const fs::path& root) {
    return fs::is_regular_file(root / kTest) && fs::is_regular_file(root / kValidation);
  }
  static bool has(const std::string& split) {
    return split.empty() || split == "train" || split == "validation" || split == "test";
  }

  std::vector<uint8_t> read(size_t i) const override { return read_sample(root_ / id(i)); }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return size_of_file(root_ / id(i));
  }
  fs::path file(size_t i) const override { return root_ / id(i); }

 private:
  static constexpr const char *kTest = "testing_list.txt", *kValidation = "validation_list.txt",
                              *kNoise = "_background_noise_";

  static std::set<std::string> lines_of(const fs::path& list) {
    const std::vector<uint8_t> bytes = read_file_bytes(list);
    std::set<std::string> lines;
    std::string line;
    for (const uint8_t byte : bytes) {
      if (byte != '\n' && byte != '\r') {
        line += char(byte);
        continue;
      }
      if (!line.empty()) lines.insert(std::move(line));
      line.clear();
    }
    if (!line.empty()) lines.insert(line);
    return lines;
  }

  fs::path root_;
};

// Of ESC-50: its list, from its folder or the list itself, and the folder of its files.
std::optional<std::pair<fs::path, fs::path>> esc50_at(const fs::path& path) {
  const fs::path list = fs::is_directory(path) ? path / "meta" / "esc50.csv" : path;
  if (list.filename() != "esc50.csv" || !fs::is_regular_file(list)) return {};
  const fs::path audio = fs::absolute(list).parent_path().parent_path() / "audio";
  if (!fs::is_directory(audio)) return {};
  return std::pair(list, audio);
}

DatasetKind kind_of(const fs::path& path) {
  const std::string ext = extension(path);
  if (fs::is_directory(path)) {
    if (contains_sample(path, SampleKind::sound)) return DatasetKind::automatic;
    for (const fs::directory_entry& entry : list_folder(path))
      if (is_tar_extension(extension(entry.path()))) return DatasetKind::tar;
    return DatasetKind::automatic;
  }
  if (is_tar_extension(ext)) return DatasetKind::tar;
  if (is_list_extension(ext)) return DatasetKind::list;
  if (is_sample_extension(SampleKind::sound, ext)) return DatasetKind::flat;
  fail(fmt::format("expected a data set of sounds, found a file '{}' of unknown kind",
                   path.filename().string()),
       path.string(),
       "give a folder of sounds, a sound, a .csv, .tsv or .jsonl list, .tar shards, or name the "
       "kind");
}

std::unique_ptr<Dataset> open_files(const fs::path& path, const DatasetOptions& options) {
  DatasetOptions chosen = options;
  const bool automatic = options.kind == DatasetKind::automatic;
  if (automatic || options.kind == DatasetKind::list)
    if (const auto esc50 = esc50_at(path)) {
      DatasetOptions of_split = options;  // the paper's: one of five folds is for testing
      if (options.fold.empty() && (options.split == "train" || options.split == "test"))
        of_split.fold = options.split == "test" ? "1" : "!1", of_split.split.clear();
      refuse_split(esc50->first, of_split.split);
      return open_list(esc50->first, of_split, esc50->second);
    }
  if (automatic) chosen.kind = kind_of(path);
  if (chosen.kind == DatasetKind::list) return open_list(path, chosen);
  if (!options.fold.empty())
    fail("only lists of sounds have folds", path.string(), "leave out `fold`");
  if (chosen.kind == DatasetKind::tar) return open_tar(path, chosen);
  if (chosen.kind == DatasetKind::cifar || chosen.kind == DatasetKind::idx)
    fail(fmt::format("data sets of the kind {} hold pictures, and the model listens",
                     to_string(chosen.kind)),
         path.string(), "leave out `kind`");
  if (automatic && fs::is_directory(path) && SpeechCommands::lies_at(path) &&
      (SpeechCommands::has(options.split) || !fs::is_directory(path / options.split))) {
    if (!SpeechCommands::has(options.split))
      fail(fmt::format("there is no split '{}'", options.split), path.string(),
           "`split` takes train, validation or test");
    return std::make_unique<SpeechCommands>(path, options);
  }
  return open_folder(path, chosen);
}

}  // namespace

std::unique_ptr<Dataset> open_sounds(const fs::path& path, const DatasetOptions& options) {
  if (states_columns(options)) refuse_columns("only lists of texts have columns", path.string());
  for (const auto& [name, seconds] : {std::pair("`window`", options.window),
                                      std::pair("`hop`", options.hop),
                                      std::pair("DatasetOptions::seconds", options.seconds)})
    if (!(seconds >= 0) || !std::isfinite(seconds))
      fail(fmt::format("expected seconds from 0 on, found {}", seconds), name);
  if (options.hop > 0 && options.window == 0)
    fail("windows have a distance, but no length", "`hop`", "give `window`, too");
  auto files = open_files(path, options);
  if (options.window == 0) return files;
  return std::make_unique<SoundWindows>(std::move(files), path, options.window, options.hop);
}

}  // namespace dataset
}  // namespace fungi
