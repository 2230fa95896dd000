// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_find.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "app/words.h"
#include "fungi/backbone/backbone.h"
#include "fungi/base/error.h"
#include "fungi/base/text.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/input/dataset.h"
#include "fungi/input/published.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

std::string plain_name(const fs::path& path) {
  std::string name = lower(path.filename().string());
  std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return name;
}

std::vector<fs::path> entries(const fs::path& folder) {
  if (!fs::is_directory(folder))
    fail("the folder does not exist", folder.string(),
         "give --data and --models as existing folders");
  std::vector<fs::path> list;
  for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

// The first of the folders that exists, or an empty path.
fs::path first_folder(const fs::path& in, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::is_directory(in / name)) return in / name;
  return {};
}

// The list of a split, or its folder; nothing where there is neither.
fs::path texts_of(const fs::path& folder, const char* split) {
  for (const char* ending : {".tsv", ".tab", ".csv", ".jsonl", ".ndjson"})
    if (fs::is_regular_file(folder / (split + std::string(ending))))
      return folder / (split + std::string(ending));
  return first_folder(folder, {split});
}

// A file classes.txt that says what numbers mean: label<TAB>name.
fs::path names_of_labels(const fs::path& folder) {
  std::ifstream file(folder / "classes.txt");
  std::string line;
  return std::getline(file, line) && line.find('\t') != std::string::npos ? folder / "classes.txt"
                                                                          : fs::path();
}

SampleKind samples_of(const PaperData& data) {
  return data.texts ? SampleKind::text : data.sound ? SampleKind::sound : SampleKind::image;
}

// The set as it is published, with its official splits.
std::optional<FoundData> look_into_published(const fs::path& folder, const PaperData& data) {
  const auto found = find_published(folder, samples_of(data));
  if (!found || found->set->key != data.key) return {};
  FoundData out{{found->root, "train"}, {found->root, "test"}, {}, {}, {}};
  if (found->set->split("val") != found->set->split("test") && found->set->split("val") &&
      !data.texts)
    out.validation = {found->root, "val"};
  return out;
}

// CIFAR, in whichever version and folder its archive is.
bool holds_cifar(const fs::path& folder) {
  try {
    return open_dataset(folder)->kind() == DatasetKind::cifar;
  } catch (const Error&) {
    return false;
  }
}

// Either what was found or the reason why not.
std::optional<FoundData> look_into_readable(const fs::path& folder, const PaperData& data,
                                            std::string& reason) {
  FoundData found;
  if (!data.retrieval && !data.masks)
    if (const auto published = look_into_published(folder, data)) return *published;
  if (data.retrieval) {
    found.train.path = found.test.path = first_folder(folder, {"jpg", "images"});
    for (const fs::path& file : entries(folder))
      if (file.filename().string().starts_with("gnd")) found.truth = file;
    if (found.train.path.empty())
      reason = fmt::format("{} has no folder jpg", folder.string());
    else if (found.truth.empty())
      reason = fmt::format("{} has no gnd_*.pkl", folder.string());
    else
      return found;
    return {};
  }
  if (data.masks) {  // a layout that holds both splits, or a folder for each
    found.train = {first_folder(folder, {"train"})};
    found.test = {first_folder(folder, {"val", "test", "validation"})};
    if (!fs::is_directory(found.train.path / "images") || found.test.path.empty())
      found.train = found.test = {folder};
    return found;
  }
  if (data.texts) {
    found.train = {texts_of(folder, "train")}, found.test = {texts_of(folder, "test")};
    found.label_names = names_of_labels(folder);
    if (!found.train.path.empty() && !found.test.path.empty()) return found;
    reason = fmt::format("{} has no {}.tsv (.csv, .jsonl)", folder.string(),
                         found.train.path.empty() ? "train" : "test");
    return {};
  }
  if (data.key.starts_with("cifar") && holds_cifar(folder))
    return FoundData{{folder, "train"}, {folder, "test"}, {}, {}, {}};
  // Clips as their authors pack them, with lists that say which are for testing.
  if (data.sound && fs::exists(folder / "meta/esc50.csv"))
    return FoundData{{folder, "", "!1"}, {folder, "", "1"}, {}, {}, {}};
  if (data.sound && fs::exists(folder / "testing_list.txt"))
    return FoundData{{folder, "train"}, {folder, "test"}, {}, {}, {}};
  found.train.path = first_folder(folder, {"train"});
  found.test.path = first_folder(folder, {"test"});
  found.validation.path = first_folder(folder, {"val", "validation"});
  if (data.key.starts_with("imagenet") && found.test.path.empty())  // test labels are not public
    found.test.path = found.validation.path, found.validation.path.clear();
  if (!found.train.path.empty() && !found.test.path.empty()) return found;
  reason = fmt::format("{} has no folder {}", folder.string(),
                       found.train.path.empty() ? "train" : "test");
  return {};
}

// What may not be looked at costs no other data set.
std::optional<FoundData> look_into(const fs::path& folder, const PaperData& data,
                                   std::string& reason) {
  try {
    return look_into_readable(folder, data, reason);
  } catch (const fs::filesystem_error& e) {
    reason = fmt::format("{}: {}", folder.string(), e.code().message());
  } catch (const Error& e) {
    reason = worded(e).what();
  }
  return {};
}

void find_data(const PaperData& data, const std::string& root, Findings& findings) {
  std::string reason = fmt::format(
      "no folder {}{} in {}", data.key,
      data.folders.empty() ? "" : fmt::format(" ({})", fmt::join(data.folders, ", ")), root);
  if (root.empty())
    reason = "--data was not given";
  else
    for (const fs::path& folder : entries(root)) {
      const std::string name = plain_name(folder);
      if (!fs::is_directory(folder)) continue;
      if (name != data.key && std::find(data.folders.begin(), data.folders.end(), name) ==
                                  data.folders.end()) {  // of another name, but what it is
        if (const auto published = look_into_published(folder, data)) {
          findings.data[data.key] = *published;
          return;
        }
        continue;
      }
      if (const auto found = look_into(folder, data, reason)) {
        findings.data[data.key] = *found;
        return;
      }
    }
  findings.absent.push_back({"data set", data.key, data.title, reason});
}

struct Candidate {
  fs::path path;
  std::string name;  // below the models' folder, in lower case
  Architecture architecture;
};

bool is_weights(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  if (name.ends_with(".index.json")) return true;
  if (name.find("-of-0") != std::string::npos) return false;  // a shard; its index stands for it
  for (const char* end : {".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".npz", ".pth.tar"})
    if (name.ends_with(end)) return true;
  return false;
}

std::vector<Candidate> candidates(const std::string& models, std::vector<std::string>& notes) {
  if (models.empty()) return {};
  entries(models);  // says so when the folder does not exist
  std::vector<fs::path> files;
  constexpr auto kWhatMayBeRead = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(models, kWhatMayBeRead))
    if (entry.is_regular_file() && is_weights(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Candidate> list;
  for (const fs::path& file : files) {
    try {
      const Checkpoint checkpoint = Checkpoint::open(file);
      Architecture architecture;
      try {
        architecture = read_architecture(checkpoint);
      } catch (const Error&) {  // OpenAI's CLIP files do not tell their activation
        architecture = read_architecture(checkpoint, {{"activation", "gelu"}});
      }
      list.push_back({file, lower(fs::relative(file, models).string()), architecture});
    } catch (const Error& e) {
      notes.push_back(
          fmt::format("{} is no checkpoint known here: {}", file.string(), worded(e.message())));
    }
  }
  return list;
}

bool mentions(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return name.find(w) != std::string::npos; });
}

bool is(const Candidate& c, const PaperBackbone& b) {
  const Architecture& a = c.architecture;
  return (b.family.empty() || a.family == b.family) &&
         (b.dialect.empty() || a.dialect == b.dialect) && a.width == b.width &&
         (b.patch == 0 || a.patch_h == b.patch) && (b.named.empty() || mentions(c.name, b.named)) &&
         !mentions(c.name, b.not_named);
}

void find_checkpoint(const PaperBackbone& backbone, const FindOptions& o,
                     const std::vector<Candidate>& list, Findings& findings) {
  if (const auto given = o.use.find(backbone.key); given != o.use.end()) {
    findings.checkpoints[backbone.key] = given->second;
    return;
  }
  std::vector<std::string> matching;
  for (const Candidate& c : list)
    if (is(c, backbone)) matching.push_back(c.path.string());
  if (matching.size() == 1) {
    findings.checkpoints[backbone.key] = matching.front();
    return;
  }
  std::string reason = o.models.empty() ? "--models was not given"
                                        : fmt::format("no such checkpoint in {}", o.models);
  if (matching.size() > 1)
    reason = fmt::format("several files may be it: {}; choose one with --use {}=FILE",
                         fmt::join(matching, ", "), backbone.key);
  findings.absent.push_back({"checkpoint", backbone.key, backbone.title,
                             fmt::format("{} (published as {})", reason, backbone.file)});
}

}  // namespace

Findings find_for(const PaperTable& table, const FindOptions& o) {
  Findings findings;
  for (const auto& [key, file] : o.use)
    if (paper_backbone(key); !fs::exists(file)) fail("the file does not exist", file, "see --use");
  const std::vector<Candidate> list = candidates(o.models, findings.notes);
  for (const std::string& key : backbones_of(table))
    find_checkpoint(paper_backbone(key), o, list, findings);
  for (const std::string& key : data_sets_of(table)) find_data(paper_data(key), o.data, findings);
  return findings;
}

}  // namespace fungi::app
