// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/hub/checksum.h"
#include "fungi/hub/fetch.h"
#include "fungi/hub/places.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string whole_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What an earlier pull wrote down; an empty object where there was none.
json record_of(const ModelPlace& place, const std::string& commit) {
  json record = parse_json(place.record(commit));
  if (!record.is_object() || !record.contains("files") || !record["files"].is_object())
    return json{{"files", json::object()}};
  return record;
}

// The folder, or, where it holds several weights, the ones that were asked for last.
fs::path opened_as(const fs::path& folder, const json& files, const std::string& weights) {
  size_t several = 0;
  for (const auto& [name, facts] : files.items()) several += is_weights(name);
  return several > 1 ? folder / weights : folder;
}

// A link where the file system has them, otherwise a copy.
bool brought(const fs::path& from, const fs::path& to) {
  const fs::path beside = to.string() + ".tmp";
  std::error_code trouble;
  fs::create_directories(to.parent_path());
  fs::remove(beside, trouble);
  fs::create_hard_link(fs::canonical(from), beside, trouble);
  if (trouble) fs::copy_file(from, beside, fs::copy_options::overwrite_existing, trouble);
  if (!trouble) fs::rename(beside, to, trouble);
  return !trouble;
}

class Pull {
 public:
  Pull(const std::string& model, const PullOptions& options)
      : options_(options), name_(parse_model_name(model)), place_(name_) {
    result_.model = name_.id, result_.revision = name_.revision;
    if (!options.offline) fetcher_ = std::make_unique<HubFetcher>(name_, options);
  }

  PullResult run() {
    try {
      bring_all();
    } catch (const PullStopped&) {
      result_.stopped = true;
    }
    return std::move(result_);
  }

 private:
  HubListing listing() {
    if (fetcher_) return parse_listing(fetcher_->listing(), name_.id);
    if (std::optional<HubListing> theirs = python_listing(name_)) return std::move(*theirs);
    fail(fmt::format("this machine has nothing of revision '{}'", name_.revision), name_.id,
         "pull it once without `offline`");
  }

  bool done_before() {
    const std::optional<std::string> commit = place_.commit();
    if (!commit || !place_.complete(*commit)) return false;
    const json record = record_of(place_, *commit);
    if (!options_.weights.empty() && !record["files"].contains(options_.weights)) return false;
    result_.commit = *commit;
    for (const auto& [name, facts] : record["files"].items())
      add(name, facts.value("bytes", uint64_t{0}), PulledFile::From::there);
    const std::string weights =
        options_.weights.empty() ? record.value("weights", "") : options_.weights;
    result_.path = opened_as(place_.folder(*commit), record["files"], weights);
    return true;
  }

  void bring_all() {
    // Of a commit, and offline, nothing can be newer than what is here.
    if ((options_.offline || is_commit(name_.revision)) && done_before()) return;
    const HubListing all = listing();
    result_.commit = all.commit;
    record_ = record_of(place_, all.commit);
    HubChoice choice = choose_files(all, options_.weights, name_.id);
    std::vector<HubFile> wanted = choice.beside;
    wanted.push_back(choice.weights);
    require_room(wanted);
    for (const HubFile& file : wanted) bring(file);
    if (choice.sharded) {
      const std::string index = whole_file(place_.folder(all.commit) / choice.weights.name);
      const std::vector<HubFile> shards = shards_of(index, choice, all, name_.id);
      require_room(shards);
      for (const HubFile& file : shards) bring(file);
    }
    record_["model"] = name_.id, record_["commit"] = all.commit;
    record_["weights"] = choice.weights.name;
    place_.keep(all.commit, record_.dump(2) + "\n");
    result_.path = opened_as(place_.folder(all.commit), record_["files"], choice.weights.name);
  }

  void require_room(const std::vector<HubFile>& files) const {
    uint64_t needed = 0;
    for (const HubFile& file : files)
      if (!recorded(file)) needed += file.bytes.value_or(0);
    const fs::path folder = place_.folder(result_.commit);
    fs::create_directories(folder);
    std::error_code unknown;
    const fs::space_info space = fs::space(folder, unknown);
    if (!unknown && space.available < needed)
      fail(fmt::format("{} needs {} MB, and {} MB are free", name_.id, needed / 1000000 + 1,
                       space.available / 1000000),
           folder.string(), "make room, or export FUNGI_HOME=FOLDER on another disk");
  }

  // Written down after its sum was right, and not touched since, as far as its length tells.
  bool recorded(const HubFile& file) const {
    const auto found = record_["files"].find(file.name);
    if (found == record_["files"].end() || !found->is_object()) return false;
    std::error_code none;
    const auto bytes = fs::file_size(place_.folder(result_.commit) / file.name, none);
    return !none && found->value("bytes", uint64_t{0}) == bytes &&
           (file.checksum.empty() || found->value("checksum", "") == file.checksum);
  }

  // From the hub's own tools, or another revision of ours.
  bool from_cache(const HubFile& file, const fs::path& target) const {
    if (file.checksum.empty() || !file.bytes) return false;
    std::vector<fs::path> candidates{python_blob(name_, file.checksum)};
    std::error_code none;
    for (const auto& other :
         fs::directory_iterator(place_.folder(result_.commit).parent_path(), none))
      if (is_commit(other.path().filename().string()))
        candidates.push_back(other.path() / file.name);
    for (const fs::path& candidate : candidates)
      if (candidate != target && file_has(candidate, file.checksum, *file.bytes) &&
          brought(candidate, target))
        return true;
    return false;
  }

  void bring(HubFile file) {
    const fs::path target = place_.folder(result_.commit) / file.name;
    auto from = PulledFile::From::there;
    const bool finished = file.bytes && file_has(target, file.checksum, *file.bytes);
    if (recorded(file)) {
      file.bytes = record_["files"][file.name].value("bytes", uint64_t{0});
      file.checksum = record_["files"][file.name].value("checksum", "");
    } else if (!finished) {
      from = PulledFile::From::cache;
      if (!from_cache(file, target)) {
        if (fetcher_) {
          from = PulledFile::From::hub;
          const auto progress = [&](size_t done, size_t total) {
            if (options_.progress) options_.progress(file.name, done, total);
          };
          result_.fetched += fetcher_->fetch(file, result_.commit, target, progress);
        } else if (!from_snapshot(file, target)) {
          fail("the file is not here, or is damaged", name_.id + "/" + file.name,
               "pull it once without `offline`");
        }
      }
    }
    add(file.name, file.bytes.value_or(0), from);
    record_["files"][file.name] = {{"bytes", file.bytes.value_or(0)}, {"checksum", file.checksum}};
  }

  // Where the hub's tools had no links they kept no sums.
  bool from_snapshot(HubFile& file, const fs::path& target) const {
    return file.checksum.empty() && brought(python_file(name_, result_.commit, file.name), target);
  }

  void add(const std::string& name, uint64_t bytes, PulledFile::From from) {
    result_.files.push_back({name, bytes, from});
    result_.bytes += bytes;
  }

  PullOptions options_;
  HubModelName name_;
  ModelPlace place_;
  std::unique_ptr<HubFetcher> fetcher_;  // none: offline
  json record_;
  PullResult result_;
};

}  // namespace

const char* to_string(PulledFile::From from) {
  switch (from) {
    case PulledFile::From::hub:
      return "hub";
    case PulledFile::From::cache:
      return "cache";
    case PulledFile::From::there:
      return "there";
  }
  return "";
}

PullResult pull(const std::string& model, const PullOptions& options) {
  return Pull(model, options).run();
}

std::string pulled_model(const std::string& model) {
  if (!model.starts_with("hf:")) return model;
  const HubModelName name = parse_model_name(model);
  const ModelPlace place(name);
  if (const auto commit = place.commit(); commit && place.complete(*commit)) {
    const json record = record_of(place, *commit);
    return opened_as(place.folder(*commit), record["files"], record.value("weights", "")).string();
  }
  if (const std::optional<HubListing> theirs = python_listing(name)) {
    const HubChoice choice = choose_files(*theirs, "", model);
    json names = json::object();
    for (const HubFile& file : theirs->files) names[file.name] = nullptr;
    const fs::path folder = python_file(name, theirs->commit, "");
    return opened_as(folder.parent_path(), names, choice.weights.name).string();
  }
  fail("this model was not pulled, and nothing is fetched unasked", model,
       fmt::format("run `pull={}{}` first", name.id,
                   name.revision == "main" ? "" : "@" + name.revision));
}

}  // namespace fungi
