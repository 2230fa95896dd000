// SPDX-License-Identifier: Apache-2.0
// Which kind of data set lies at a path, and what all kinds share.
#include "fungi/input/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/sound.h"
#include "fungi/input/text_file.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using namespace dataset;

std::optional<std::pair<uint64_t, uint64_t>> identity_of(const fs::path& place) {
  struct stat found;
  if (::stat(place.c_str(), &found) != 0) return {};
  return std::pair<uint64_t, uint64_t>(found.st_dev, found.st_ino);
}

constexpr std::array<std::pair<const char*, DatasetKind>, 7> kKinds = {
    {{"auto", DatasetKind::automatic},
     {"classes", DatasetKind::classes},
     {"flat", DatasetKind::flat},
     {"list", DatasetKind::list},
     {"tar", DatasetKind::tar},
     {"cifar", DatasetKind::cifar},
     {"idx", DatasetKind::idx}}};

bool one_of(std::string_view text, std::initializer_list<std::string_view> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

DatasetKind kind_of_file(const fs::path& file) {
  const std::string ext = extension(file), name = file.filename().string();
  if (is_tar_extension(ext)) return DatasetKind::tar;
  if (name.find("idx3-ubyte") != std::string::npos) return DatasetKind::idx;
  if (is_list_extension(ext)) return DatasetKind::list;
  if (ext == "bin") return DatasetKind::cifar;
  if (is_image_extension(ext)) return DatasetKind::flat;
  fail(fmt::format("expected a data set, found a file '{}' of unknown kind", name), file.string(),
       "give a folder of images, a .csv/.tsv/.jsonl list, .tar shards, CIFAR .bin or IDX files, or "
       "name the kind");
}

// Images anywhere win over archives lying beside them.
DatasetKind kind_of_folder(const fs::path& folder) {
  DatasetKind packed = DatasetKind::automatic;
  for (const fs::directory_entry& file : list_folder(folder)) {
    const std::string ext = extension(file), name = file.path().filename().string();
    if (is_image_extension(ext)) return DatasetKind::automatic;
    if (packed != DatasetKind::automatic || file.is_directory()) continue;
    if (is_tar_extension(ext)) packed = DatasetKind::tar;
    if (name.find("idx3-ubyte") != std::string::npos) packed = DatasetKind::idx;
    if (ext == "bin" && (name.starts_with("data_batch") ||
                         one_of(name, {"train.bin", "test.bin", "test_batch.bin"})))
      packed = DatasetKind::cifar;
  }
  return packed == DatasetKind::automatic || contains_sample(folder, SampleKind::image)
             ? DatasetKind::automatic
             : packed;
}

// Archives unpack into a folder of their own: data/cifar-10-batches-bin.
std::string where_samples_are(const fs::path& folder, SampleKind samples) {
  if (samples == SampleKind::text)
    return "give a folder that holds .txt files, a .tsv, .csv or .jsonl file, or plain lines";
  if (samples == SampleKind::sound)
    return "give a folder that holds sounds (.wav, .flac, .ogg, .mp3, ...), or a list of them";
  std::error_code ignored;
  if (fs::is_directory(folder, ignored))
    for (const fs::directory_entry& inner : list_folder(folder))
      if (inner.is_directory(ignored))
        if (const DatasetKind kind = kind_of_folder(inner); kind != DatasetKind::automatic)
          return fmt::format("give {}, which holds a data set of the kind {}",
                             inner.path().string(), to_string(kind));
  return "give a folder that holds pictures (.jpg, .png, .webp, .tif, ...), or name the kind of "
         "data set";
}

}  // namespace

const char* to_string(DatasetKind kind) {
  for (const auto& [name, value] : kKinds)
    if (value == kind) return name;
  return "unknown";
}

DatasetKind parse_dataset_kind(std::string_view name) {
  std::string choices;
  for (const auto& [text, kind] : kKinds) {
    if (name == text) return kind;
    choices += (choices.empty() ? "" : ", ") + std::string(text);
  }
  fail(fmt::format("expected one of {}, found '{}'", choices, name), "kind of data set");
}

const std::string& Dataset::fail_range(size_t i) const {
  fail(fmt::format("asked for sample {} of {} with {} labels", i, ids_.size(), labels_.size()),
       "data set", "count from 0; each sample has one label, -1 where it has none");
}

void Dataset::finish(DatasetKind kind, const fs::path& place) {
  kind_ = kind;
  place_ = place;
  identity_ = identity_of(place);
  if (ids_.size() != labels_.size())
    fail(fmt::format("expected one label per sample, found {} for {}", labels_.size(), ids_.size()),
         place.string(), "use -1 for samples without a label");
  if (ids_.empty())
    fail(fmt::format("expected {}, found {}{}{}", words_for(samples_).plural, describe(ignored_),
                     notes_.empty() ? "" : "; ", fmt::join(notes_, "; ")),
         place.string(), where_samples_are(place, samples_));
  std::unordered_set<std::string_view> seen;
  for (const std::string& id : ids_)
    if (!seen.insert(id).second)
      fail(fmt::format("sample id '{}' occurs twice", id), place.string(),
           "ids name rows of the result: remove the second one");
}

void Dataset::require_present() const {
  if (identity_ && identity_of(place_) != identity_)
    throw Exhausted("the data set is no longer where it was opened", place_.string(),
                    "put it, or the disk that holds it, back in its place, then repeat");
}

Sample Dataset::decode(size_t i, std::span<const uint8_t> bytes,
                       const DecodeOptions& options) const {
  if (samples_ == SampleKind::text) return decode_text_file(bytes, id(i));
  if (samples_ == SampleKind::sound) return decode_part(i, bytes, 0, seconds_, options);
  return decode_image(bytes, id(i), options);
}

Image Dataset::image(size_t i, const DecodeOptions& options) const {
  Sample sample = decode(i, read(i), options);
  image_of(sample);
  return std::get<Image>(std::move(sample));
}

fs::path Dataset::file(size_t) const { return {}; }

std::vector<uint8_t> Dataset::read_sample(const fs::path& file) const {
  constexpr uint64_t kReadAtOnce = uint64_t{16}
                                   << 20;  // what is longer is read where it is decoded
  if (samples_ == SampleKind::sound && size_of_file(file).value_or(0) > kReadAtOnce) return {};
  return read_file_bytes(file);
}

Sound Dataset::decode_part(size_t i, std::span<const uint8_t> bytes, double begin, double seconds,
                           const DecodeOptions& options) const {
  const SoundPart part{begin, seconds, options.allow_truncated};
  const fs::path alone = bytes.empty() ? file(i) : fs::path();
  return alone.empty() ? decode_sound(bytes, id(i), part) : read_sound(alone, part);
}

std::optional<uint64_t> Dataset::stored_bytes(size_t) const { return {}; }

size_t Dataset::container(size_t) const { return 0; }

std::string Dataset::key(size_t i) const {
  if (samples_ == SampleKind::text) try {
      const std::vector<uint8_t> bytes = read(i);
      return text_key({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } catch (const Exhausted&) {
      throw;
    } catch (const Error&) {
      return "";  // it fails when it is read for its features, too, and says why
    }
  const auto bytes = stored_bytes(i);
  return bytes ? std::to_string(*bytes) : "";
}

std::unique_ptr<Dataset> open_dataset(const fs::path& path, const DatasetOptions& options) try {
  const fs::file_status status = fs::status(path);
  const bool of_texts = options.samples == SampleKind::text;
  if (!fs::exists(status) && !(of_texts && path == kStandardInput))
    fail("there is no such file or folder", path.string(), "check the path");
  if (options.samples != SampleKind::sound && (options.window > 0 || options.hop > 0))
    fail("only sounds are cut into windows", path.string(), "leave out `window` and `hop`");
  if (of_texts && !options.fold.empty())
    fail("lists of texts have no folds", path.string(), "leave out `fold`");
  if (options.kind == DatasetKind::automatic && !states_columns(options) && options.fold.empty())
    if (auto published = open_published(path, options)) return published;
  if (of_texts) return open_texts(path, options);
  if (options.samples == SampleKind::sound) return open_sounds(path, options);
  if (options.samples != SampleKind::image)
    fail(fmt::format("there is no reader of data sets of this kind yet: {}",
                     to_string(options.samples)),
         path.string(), "use a model that looks at images, or a Dataset of your own");
  if (states_columns(options)) refuse_columns("only lists of texts have columns", path.string());
  DatasetOptions chosen = options;
  if (chosen.kind == DatasetKind::automatic && fs::is_directory(status))
    if (const fs::path inside = unpacked_cifar(path); !inside.empty())
      return open_cifar(inside, chosen);
  if (chosen.kind == DatasetKind::automatic)
    chosen.kind = fs::is_directory(status) ? kind_of_folder(path) : kind_of_file(path);
  if (!options.fold.empty() && chosen.kind != DatasetKind::list)
    fail("only lists have folds", path.string(), "leave out `fold`");
  switch (chosen.kind) {
    case DatasetKind::list:
      return open_list(path, chosen);
    case DatasetKind::tar:
      return open_tar(path, chosen);
    case DatasetKind::cifar:
      return open_cifar(path, chosen);
    case DatasetKind::idx:
      return open_idx(path, chosen);
    default:
      return open_folder(path, chosen);
  }
} catch (const fs::filesystem_error& error) {
  fail(error.code().message(), error.path1().empty() ? path.string() : error.path1().string(),
       "check the path and its permissions");
}

namespace dataset {

std::string extension(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  if (dot >= 4 && name.compare(dot - 4, 4, ".tar") == 0) return name.substr(dot - 3);
  return name.substr(dot + 1);
}

bool is_image_extension(std::string_view ext) {
  return one_of(ext, {"jpg",  "jpeg", "jpe",  "jfif", "mpo", "png", "webp", "bmp", "gif", "tif",
                      "tiff", "heic", "heif", "avif", "ppm", "pgm", "jxl",  "jp2", "tga", "qoi"});
}

bool is_sample_extension(SampleKind samples, std::string_view ext) {
  if (samples == SampleKind::sound)  // those that are not decoded, too: each says so
    return one_of(ext, {"wav", "wave", "flac", "ogg", "oga", "opus", "mp3", "aif", "aiff", "aifc",
                        "au", "snd", "caf", "w64", "rf64", "m4a", "aac", "wma", "weba"});
  return samples == SampleKind::text ? ext == "txt" : is_image_extension(ext);
}

SampleWords words_for(SampleKind samples) {
  if (samples == SampleKind::sound) return SampleWords{"sounds", "sound(s)"};
  return samples == SampleKind::text ? SampleWords{"texts", "text(s)"}
                                     : SampleWords{"images", "picture(s)"};
}

std::string text_key(std::string_view text) { return sum_key(fnv1a64(text)); }
std::string sum_key(uint64_t sum) { return fmt::format("{:016x}", sum); }

bool is_tar_extension(std::string_view ext) {
  return one_of(ext, {"tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tar.lz4", "tar.z", "tgz",
                      "tbz", "tbz2", "txz", "tzst"});
}

bool is_list_extension(std::string_view ext) {
  return one_of(ext, {"csv", "tsv", "jsonl", "ndjson", "txt", "lst"});
}

bool is_hidden(const fs::path& file) { return file.filename().string().starts_with('.'); }

std::vector<fs::directory_entry> list_folder(const fs::path& folder, size_t* hidden_samples,
                                             SampleKind samples) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (!is_hidden(it->path()))
      entries.push_back(*it);
    else if (hidden_samples && is_sample_extension(samples, extension(it->path())))
      ++*hidden_samples;
  if (error)
    fail(fmt::format("cannot read the folder: {}", error.message()), folder.string(),
         "check its permissions");
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path().native() < b.path().native(); });
  return entries;
}

std::optional<uint64_t> size_of_file(const fs::path& file) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  return error ? std::nullopt : std::optional(size);
}

bool states_columns(const DatasetOptions& options) {
  return !options.text_column.empty() || !options.label_column.empty() ||
         !options.id_column.empty();
}

void refuse_columns(const char* why, const std::string& place, const char* or_else) {
  fail(why, place,
       std::string("leave out `text_column`, `label_column` and `id_column`") + or_else);
}

void refuse_split(const fs::path& file, const std::string& split) {
  if (!split.empty())
    fail(fmt::format("a single file has no split '{}'", split), file.string(),
         "give the folder that holds the split, or leave the split out");
}

std::string describe(const std::map<std::string, size_t>& by_extension) {
  std::string text;
  for (const auto& [ext, count] : by_extension)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        ext.empty() ? "without extension" : "." + ext);
  return text.empty() ? "no files" : "only other files (" + text + ")";
}

std::vector<std::string> number_labels(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& fixed_names,
                                       const std::function<std::string(size_t)>& place,
                                       std::vector<int>& labels) {
  labels.assign(texts.size(), -1);
  const auto as_numbers = [&](int limit) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const char* end = texts[i].data() + texts[i].size();
      if (texts[i].empty()) continue;
      const auto result = std::from_chars(texts[i].data(), end, labels[i]);
      if (result.ec != std::errc() || result.ptr != end || labels[i] < -1 || labels[i] >= limit)
        return false;
    }
    return true;
  };
  if (fixed_names.empty() && as_numbers(std::numeric_limits<int>::max())) return {};
  std::vector<std::string> names = fixed_names;
  if (names.empty()) {
    std::set<std::string> found(texts.begin(), texts.end());
    found.erase("");
    names.assign(found.begin(), found.end());
  }
  std::map<std::string_view, int> numbers;
  for (size_t k = 0; k < names.size(); ++k) numbers.emplace(names[k], int(k));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto found = numbers.find(texts[i]);
    labels[i] = found == numbers.end() ? -1 : found->second;
    if (texts[i].empty() || found != numbers.end()) continue;
    if (as_numbers(int(names.size())))
      return names;  // names were given, but the source speaks in numbers
    fail(fmt::format("class '{}' is not among the {} given classes", texts[i], names.size()),
         place(i), "use the classes of the training split in both places");
  }
  return names;
}

namespace {
constexpr std::string_view kPathNames[] = {"path",     "file",      "filename", "file_name",
                                           "filepath", "file_path", "image",    "image_path",
                                           "img",      "img_path",  "audio",    "audio_path"};
constexpr std::string_view kLabelNames[] = {"label", "class", "target", "category", "cls"};
}  // namespace

bool is_path_name(std::string_view name) { return std::ranges::count(kPathNames, name) > 0; }
bool is_label_name(std::string_view name) { return std::ranges::count(kLabelNames, name) > 0; }
bool is_fold_name(std::string_view name) { return name == "fold" || name == "split"; }

std::string known_names() {
  return fmt::format("{} for the file, {} for the label", fmt::join(kPathNames, ", "),
                     fmt::join(kLabelNames, ", "));
}

}  // namespace dataset
}  // namespace fungi
