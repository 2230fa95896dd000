// SPDX-License-Identifier: Apache-2.0
// Tar shards in the manner of WebDataset, through libarchive: members with the same key (the path
// up to the first dot of the file name) belong together. Opening reads each shard once to index it.
// Plain .tar files are then read at random; compressed ones forwards, so ask for their samples in
// ascending order where you can.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestMember = uint64_t(1) << 30;  // no image file is larger than 1 GiB
constexpr size_t kStashBytes = size_t(256)
                               << 20;  // members of a compressed shard read ahead of their turn

class TarReader {
 public:
  explicit TarReader(const fs::path& file) : file_(file), archive_(archive_read_new()) {
    archive_read_support_filter_all(archive_.get());
    archive_read_support_format_tar(archive_.get());
    archive_read_support_format_gnutar(archive_.get());
    check(archive_read_open_filename(archive_.get(), file.c_str(), 1 << 16));
  }

  // Goes to the next regular file; false at the end.
  bool next() {
    for (;;) {
      const int status = archive_read_next_header(archive_.get(), &entry_);
      if (status == ARCHIVE_EOF) return false;
      check(status);
      ++ordinal_;
      if (archive_entry_filetype(entry_) == AE_IFREG && archive_entry_pathname(entry_)) return true;
    }
  }

  std::string name() const {
    const std::string name = archive_entry_pathname(entry_);
    return name.starts_with("./") ? name.substr(2) : name;
  }
  size_t ordinal() const { return ordinal_; }  // of the member, from 1
  uint64_t size() const { return uint64_t(archive_entry_size(entry_)); }
  // Plain tar: where the member's bytes begin in the file.
  uint64_t offset() const { return uint64_t(archive_filter_bytes(archive_.get(), 0)); }
  bool compressed() const { return archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE; }

  std::vector<uint8_t> data() {
    if (size() > kLargestMember)
      fail(fmt::format("member '{}' of {} bytes is too large for an image", name(), size()),
           file_.string());
    std::vector<uint8_t> bytes(size());
    for (size_t at = 0; at < bytes.size();) {
      const la_ssize_t got =
          archive_read_data(archive_.get(), bytes.data() + at, bytes.size() - at);
      if (got < 0) check(ARCHIVE_FATAL);
      if (got == 0) fail(fmt::format("member '{}' is cut off", name()), file_.string());
      at += size_t(got);
    }
    return bytes;
  }

 private:
  void check(int status) const {
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;
    const char* reason = archive_error_string(archive_.get());
    fail(fmt::format("cannot read the archive: {}", reason ? reason : "unknown reason"),
         file_.string(), "check it with 'tar -tf'");
  }

  struct Close {
    void operator()(archive* a) const { archive_read_free(a); }
  };
  fs::path file_;
  std::unique_ptr<archive, Close> archive_;
  archive_entry* entry_ = nullptr;
  size_t ordinal_ = 0;
};

struct Member {
  size_t ordinal;
  uint64_t offset, size;
};

// One archive with its index of image members.
class Shard {
 public:
  explicit Shard(fs::path file) : file_(std::move(file)) {}

  const fs::path& file() const { return file_; }
  void set_compressed(bool compressed) { compressed_ = compressed; }
  void add(const Member& member) { wanted_.emplace(member.ordinal, 0); }

  std::vector<uint8_t> read(const Member& member) const {
    return compressed_ ? read_forwards(member) : read_at(member);
  }

 private:
  std::vector<uint8_t> read_at(const Member& member) const {
    const auto failed = [&](const std::string& why) {
      fail(fmt::format("cannot read the archive: {}", why), file_.string());
    };
    struct Descriptor {
      int fd;
      ~Descriptor() {
        if (fd >= 0) ::close(fd);
      }
    } file{::open(file_.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) failed(std::generic_category().message(errno));
    std::vector<uint8_t> bytes(member.size);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t got =
          ::pread(file.fd, bytes.data() + at, bytes.size() - at, off_t(member.offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) failed(std::generic_category().message(errno));
      if (got == 0) failed("it has become shorter since it was indexed");
      at += size_t(got);
    }
    return bytes;
  }

  // Reads on until the member comes by, keeping what others will ask for; starts again when it has
  // passed.
  std::vector<uint8_t> read_forwards(const Member& member) const {
    const std::lock_guard lock(mutex_);
    if (const auto kept = stash_.find(member.ordinal); kept != stash_.end()) {
      std::vector<uint8_t> bytes = std::move(kept->second);
      stashed_ -= bytes.size();
      stash_.erase(kept);
      return bytes;
    }
    if (!reader_ || reader_->ordinal() >= member.ordinal)
      reader_ = std::make_unique<TarReader>(file_);
    while (reader_->next()) {
      if (reader_->ordinal() == member.ordinal) return reader_->data();
      if (!wanted_.count(reader_->ordinal())) continue;
      std::vector<uint8_t>& place = stash_[reader_->ordinal()];
      stashed_ -= place.size();
      place = reader_->data();
      stashed_ += place.size();
      while (stashed_ > kStashBytes) {
        stashed_ -= stash_.begin()->second.size();
        stash_.erase(stash_.begin());
      }
    }
    fail("cannot read the archive: it has changed since it was indexed", file_.string());
  }

  fs::path file_;
  bool compressed_ = false;
  std::unordered_map<size_t, char> wanted_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<TarReader> reader_;
  mutable std::map<size_t, std::vector<uint8_t>> stash_;
  mutable size_t stashed_ = 0;
};

std::string label_of_json(const std::vector<uint8_t>& bytes, const std::string& place) {
  const auto object = nlohmann::json::parse(bytes, nullptr, false);
  if (object.is_discarded()) fail("expected JSON", place);
  if (!object.is_object()) return "";
  for (const auto& [key, value] : object.items()) {
    if (!is_label_name(key)) continue;
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

class TarDataset final : public Dataset {
 public:
  TarDataset(const std::vector<fs::path>& files, const fs::path& place,
             const DatasetOptions& options) {
    std::vector<std::string> texts;
    for (const fs::path& file : files) index(file, texts);
    class_names_ = number_labels(texts, options.class_names, place.string(), labels_);
    finish(DatasetKind::tar, place);
  }

  std::vector<uint8_t> read(size_t i) const override {
    return shards_[where_.at(i).shard]->read(where_[i].member);
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override { return where_.at(i).member.size; }

 private:
  struct Where {
    size_t shard;
    Member member;
  };

  void index(const fs::path& file, std::vector<std::string>& texts) {
    auto shard = std::make_unique<Shard>(file);
    std::unordered_map<std::string, std::string> labels;  // by key
    const size_t first = ids_.size();
    TarReader reader(file);
    while (reader.next()) {
      const std::string name = reader.name();
      const size_t base = name.rfind('/') + 1, dot = name.find('.', base);  // npos + 1 == 0
      if (dot == base) continue;                                            // hidden
      const std::string key = name.substr(0, dot);
      const std::string ext = dot == std::string::npos ? "" : lower(name.substr(dot + 1));
      shard->set_compressed(reader.compressed());
      if (is_image_extension(ext)) {
        const Member member{reader.ordinal(), reader.offset(), reader.size()};
        if (member.size > kLargestMember)
          fail(fmt::format("member '{}' of {} bytes is too large for an image", name, member.size),
               file.string());
        shard->add(member);
        where_.push_back({shards_.size(), member});
        ids_.push_back(key);
      } else if (ext == "cls") {
        labels[key] = trimmed(reader.data());
      } else if (ext == "json") {
        labels.emplace(key, label_of_json(reader.data(), file.string() + ":" + name));
      } else {
        ++ignored_[ext];
      }
    }
    for (size_t i = first; i < ids_.size(); ++i) texts.push_back(labels[ids_[i]]);
    shards_.push_back(std::move(shard));
  }

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Where> where_;
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
