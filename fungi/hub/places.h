// SPDX-License-Identifier: Apache-2.0
// Where models lie on this machine: our own cache and the one of the hub's own tools, which is
// read. Internal to the library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fungi/hub/listing.h"
#include "fungi/hub/model_name.h"

namespace fungi {

// FUNGI_HOME, or else a folder in the user's cache.
std::filesystem::path fungi_home();
// HF_HUB_CACHE, HF_HOME/hub, or where it is without them.
std::filesystem::path python_cache();
// HF_TOKEN, or what the hub's tools keep in a file; empty: none. `from_file` says which.
std::string read_hub_token(bool& from_file);

// A model in our cache: FUNGI_HOME/hub/ORG--NAME, in it a folder for each commit and refs/, files
// with the commit that a branch or tag had.
class ModelPlace {
 public:
  explicit ModelPlace(const HubModelName& name);

  std::filesystem::path folder(const std::string& commit) const { return root_ / commit; }
  std::optional<std::string> commit() const;       // of the revision, as it was pulled last
  bool complete(const std::string& commit) const;  // there is a record of what was pulled
  std::string record(const std::string& commit) const;
  void keep(const std::string& commit, const std::string& record) const;

 private:
  std::filesystem::path root_, ref_;
  std::string revision_;
};

// What the hub's own tools have fetched of a model, if anything; checksums are the names of blobs.
std::optional<HubListing> python_listing(const HubModelName& name);
std::filesystem::path python_file(const HubModelName& name, const std::string& commit,
                                  const std::string& file);
// A file of this sum there, whatever revision it is of.
std::filesystem::path python_blob(const HubModelName& name, const std::string& checksum);

}  // namespace fungi
