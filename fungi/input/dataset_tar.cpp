// SPDX-License-Identifier: Apache-2.0
// Tar shards in the manner of WebDataset, through libarchive: members with the same key belong
// together. Opening reads each shard once to index it. Plain .tar files are then read at random;
// compressed ones forwards, so ask for their samples in ascending order where you can. Links, hard
// or symbolic, have the content of the member they name.
//
// WebDataset's key is the path up to the first dot of the file name. Archives of photographs have
// dots elsewhere ("IMG_2020.01.02.jpg"): there the key ends at the last dot, unless the image is
// another view of a sample ("000.seg.png" beside "000.jpg"), which is left out.
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "fungi/base/json.h"
#include "fungi/input/tar_shard.h"

namespace fungi::dataset {
namespace {

std::string label_of_json(const std::vector<uint8_t>& bytes, const std::string& place) {
  std::vector<std::string> keys;
  const auto object = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, keys);
  if (object.is_discarded()) fail("expected JSON", place);
  if (!object.is_object()) return "";
  for (const std::string& key : keys) {
    if (!is_label_name(lower(key))) continue;
    const auto& value = object[key];  // others, such as a tree of categories, are no label
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer()) return value.dump();
  }
  return "";
}

std::string trimmed(const std::vector<uint8_t>& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

using Labels = std::unordered_map<std::string, std::string>;  // by key

class TarDataset final : public Dataset {
 public:
  TarDataset(const std::vector<fs::path>& files, const fs::path& place,
             const DatasetOptions& options) {
    samples_ = options.samples, seconds_ = options.seconds;
    std::vector<std::string> texts;
    for (const fs::path& file : files) index(file, texts);
    require_unique_ids();
    if (std::all_of(texts.begin(), texts.end(), [](const auto& t) { return t.empty(); }))
      take_folders(texts);
    class_names_ = number_labels(texts, options.class_names, place.string(), labels_);
    finish(DatasetKind::tar, place);
    names_ = {};
  }

  std::vector<uint8_t> read(size_t i) const override {
    if (const auto bad = unreadable_.find(i); bad != unreadable_.end()) throw bad->second;
    id(i);  // an Error where there is none
    return shards_[where_[i].shard]->read(where_[i].member);
  }
  size_t container(size_t i) const override {
    id(i);
    return where_[i].shard;
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    if (unreadable_.count(i)) return {};
    id(i);
    return where_[i].member.size;
  }

 private:
  struct Where {
    size_t shard;
    Member member;
  };
  struct Named {
    std::string name, key, ext;
  };
  struct Picture {
    std::string name, key, first_key;  // keys up to the last and to the first dot
  };

  void index(const fs::path& file, std::vector<std::string>& texts) {
    auto shard = std::make_unique<Shard>(file, held_);
    Labels labels;
    Names names;
    std::vector<Picture> pictures;
    std::vector<Named> label_links;
    TarReader reader(file);
    while (reader.next()) {
      const std::string name = reader.name();
      const size_t base = name.rfind('/') + 1;  // npos + 1 == 0
      const size_t first = name.find('.', base), last = name.rfind('.');
      names.add(reader);
      if (first == base) continue;  // hidden
      const bool dotted = first != std::string::npos;
      const std::string key = dotted ? name.substr(0, last) : name;
      const std::string ext = dotted ? lower(name.substr(last + 1)) : "";
      shard->set_compressed(reader.compressed());
      if (is_sample_extension(samples_, ext)) {
        pictures.push_back({name, key, name.substr(0, first)});
      } else if (ext == "cls" || ext == "json") {
        if (reader.target())
          label_links.push_back({name, key, ext});
        else
          add_label({name, key, ext}, reader.data(), file, labels);
      } else if (!reader.is_symbolic()) {  // that may be a folder
        ++ignored_[ext];
      }
    }
    if (!label_links.empty()) {
      Holdings none;
      Shard once(file, none);  // wants no images: keeps none, and closes the file
      once.set_compressed(reader.compressed());
      follow(label_links, names, once, labels);
    }
    std::unordered_set<std::string> keys;
    for (const Picture& p : pictures)
      if (p.key == p.first_key) keys.insert(p.key);
    for (const Picture& p : pictures) {
      if (p.key != p.first_key && keys.count(p.first_key)) {
        ++ignored_[lower(p.name.substr(p.first_key.size() + 1))];
        continue;
      }
      place(ids_.size(), p.name, names, *shard);
      ids_.push_back(p.key);
      names_.push_back(p.name);
      const auto label = labels.find(p.key), of_sample = labels.find(p.first_key);
      texts.push_back(label != labels.end()       ? label->second
                      : of_sample != labels.end() ? of_sample->second
                                                  : "");
    }
    shards_.push_back(std::move(shard));
  }

  void require_unique_ids() const {
    std::unordered_map<std::string_view, size_t> seen;
    const auto where = [&](size_t i) {
      return fmt::format("'{}' of {}", names_[i], shards_[where_[i].shard]->file().string());
    };
    for (size_t i = 0; i < ids_.size(); ++i)
      if (const auto [at, added] = seen.emplace(ids_[i], i); !added)
        fail(fmt::format("sample id '{}' occurs twice: {} and {}", ids_[i], where(at->second),
                         where(i)),
             shards_[where_[i].shard]->file().string(),
             where_[i].shard == where_[at->second].shard
                 ? "ids name rows of the result: rename one of them"
                 : "ids name rows of the result: rename one of them, or extract the archives into "
                   "stores of their own");
  }

  // An archive of class folders. One folder alone says nothing: it holds everything.
  void take_folders(std::vector<std::string>& texts) {
    const auto top = [](const std::string& id) {
      const size_t slash = id.find('/');
      return slash == std::string::npos ? "" : id.substr(0, slash);
    };
    std::set<std::string> tops;
    for (const std::string& id : ids_) tops.insert(top(id));
    const bool loose = tops.erase("") > 0;
    if (tops.size() < 2) return;
    for (size_t i = 0; i < ids_.size(); ++i) texts[i] = top(ids_[i]);
    notes_.push_back(fmt::format(
        "no member gives a label: the {} top folders are the classes{}", tops.size(),
        loose ? fmt::format(", and {} outside have none", words_for(samples_).plural) : ""));
  }

  // Where the bytes of an image are, or why they cannot be had.
  void place(size_t sample, const std::string& name, const Names& names, Shard& shard) {
    const Member* member = names.find(name);
    where_.push_back({shards_.size(), member ? *member : Member{}});
    if (!member) {
      unreadable_.emplace(sample, dangling(name, names, shard));
    } else if (member->size > kLargestFile) {
      unreadable_.emplace(sample, Error(too_large(name, member->size), shard.file().string(),
                                        "take it out of the archive"));
    } else {
      shard.add(*member);
    }
  }

  static Error dangling(const std::string& name, const Names& names, const Shard& shard) {
    return Error(fmt::format("member '{}' is a link to '{}', which is no file of the archive", name,
                             names.target(name)),
                 shard.file().string(), "pack it again by 'tar --dereference --hard-dereference'");
  }

  // Labels that are links, in the order of what they mean: one pass over a compressed shard.
  static void follow(const std::vector<Named>& links, const Names& names, Shard& shard,
                     Labels& labels) {
    std::map<size_t, std::pair<Member, std::vector<const Named*>>> by_ordinal;
    for (const Named& link : links) {
      const Member* member = names.find(link.name);
      if (!member) throw dangling(link.name, names, shard);
      if (member->size > kLargestFile)
        fail(too_large(link.name, member->size), shard.file().string());
      auto& entry = by_ordinal[member->ordinal];
      entry.first = *member;
      entry.second.push_back(&link);
    }
    // Else it would be closed behind each of them.
    for (const auto& [ordinal, entry] : by_ordinal) shard.add(entry.first);
    for (const auto& [ordinal, entry] : by_ordinal) {
      const std::vector<uint8_t> bytes = shard.read(entry.first);
      for (const Named* link : entry.second) add_label(*link, bytes, shard.file(), labels);
    }
  }

  static void add_label(const Named& member, const std::vector<uint8_t>& bytes,
                        const fs::path& file, Labels& labels) {
    if (member.ext == "cls")
      labels[member.key] = trimmed(bytes);
    else
      labels.emplace(member.key, label_of_json(bytes, file.string() + ":" + member.name));
  }

  mutable Holdings held_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Where> where_;
  std::vector<std::string> names_;      // of the members, while the archives are opened
  std::map<size_t, Error> unreadable_;  // these samples fail, each with its reason
};

}  // namespace

std::unique_ptr<Dataset> open_tar(const fs::path& path, const DatasetOptions& options) {
  if (!options.split.empty())
    fail(fmt::format("tar shards have no split '{}'", options.split), path.string(),
         "give the shards of one split");
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const fs::path& file : list_folder(path))
      if (is_tar_extension(extension(file))) files.push_back(file);
    if (files.empty()) fail("expected .tar files, found none", path.string());
  } else {
    files.push_back(path);
  }
  return std::make_unique<TarDataset>(files, path, options);
}

}  // namespace fungi::dataset
