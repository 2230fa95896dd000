// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/places.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
constexpr const char* kRecord = "pulled.json";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

fs::path user_cache() {
  if (const std::string own = variable("XDG_CACHE_HOME"); !own.empty()) return own;
  const std::string home = variable("HOME");
  if (home.empty())
    fail("there is no home folder to keep models in", "HOME", "export FUNGI_HOME=FOLDER");
  return fs::path(home) / ".cache";
}

fs::path hub_home() {
  const std::string own = variable("HF_HOME");
  return own.empty() ? user_cache() / "huggingface" : fs::path(own);
}

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path, std::ios::binary);
  std::getline(file, line);
  const size_t end = line.find_last_not_of(" \t\r\n");
  return line.substr(0, end == std::string::npos ? 0 : end + 1);
}

fs::path python_folder(const HubModelName& name) {
  std::string folder = "models--" + folder_name(name.id);
  return python_cache() / folder;
}

}  // namespace

fs::path fungi_home() {
  const std::string own = variable("FUNGI_HOME");
  return own.empty() ? user_cache() / "fungi" : fs::path(own);
}

fs::path python_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string own = variable(name); !own.empty()) return own;
  return hub_home() / "hub";
}

std::string read_hub_token(bool& from_file) {
  from_file = false;
  std::string token;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (token.empty()) token = variable(name);
  if (token.empty()) {
    from_file = true;
    const std::string file = variable("HF_TOKEN_PATH");
    std::error_code none;
    const fs::path path = file.empty() ? hub_home() / "token" : fs::path(file);
    if (fs::is_regular_file(path, none)) token = first_line(path);
  }
  for (const char c : token)
    if (c <= ' ' || c >= 0x7F)
      fail("expected a token of ASCII letters without blanks or line ends, found others",
           from_file ? "the hub's token file" : "HF_TOKEN",
           "log in again, or export the token again");
  return token;
}

ModelPlace::ModelPlace(const HubModelName& name)
    : root_(fungi_home() / "hub" / folder_name(name.id)),
      ref_(root_ / "refs" / url_encoded(name.revision)),
      revision_(name.revision) {}

std::optional<std::string> ModelPlace::commit() const {
  const std::string commit = is_commit(revision_) ? revision_ : first_line(ref_);
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

bool ModelPlace::complete(const std::string& commit) const {
  std::error_code none;
  return fs::is_regular_file(folder(commit) / kRecord, none);
}

std::string ModelPlace::record(const std::string& commit) const {
  std::ifstream file(folder(commit) / kRecord, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ModelPlace::keep(const std::string& commit, const std::string& record) const {
  write_file_atomically(folder(commit) / kRecord, record);
  if (is_commit(revision_)) return;
  fs::create_directories(ref_.parent_path());
  write_file_atomically(ref_, commit + "\n");
}

fs::path python_file(const HubModelName& name, const std::string& commit, const std::string& file) {
  return python_folder(name) / "snapshots" / commit / file;
}

fs::path python_blob(const HubModelName& name, const std::string& checksum) {
  return python_folder(name) / "blobs" / checksum;
}

std::optional<HubListing> python_listing(const HubModelName& name) {
  const fs::path root = python_folder(name);
  std::string commit = name.revision;
  // A branch may have slashes, which are folders in refs/.
  if (!is_commit(commit)) commit = first_line(root / "refs" / commit);
  std::error_code none;
  const fs::path snapshot = root / "snapshots" / commit;
  if (!is_commit(commit) || !fs::is_directory(snapshot, none)) return {};
  HubListing listing{commit, {}};
  for (const auto& entry : fs::recursive_directory_iterator(
           snapshot, fs::directory_options::skip_permission_denied, none)) {
    if (!fs::is_regular_file(entry.path(), none)) continue;  // behind its link
    HubFile file{.name = entry.path().lexically_relative(snapshot).generic_string(),
                 .bytes = fs::file_size(entry.path(), none)};
    if (fs::is_symlink(entry.path(), none))
      if (const std::string sum = fs::read_symlink(entry.path(), none).filename().string();
          is_commit(sum) || sum.size() == 64)
        file.checksum = sum;
    if (is_safe_file_name(file.name)) listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace fungi
