// SPDX-License-Identifier: Apache-2.0
// Files from a hub: asked again while it may help, gone on with where they broke off, kept when
// their sum is right. Internal to the library.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "fungi/hub/http_get.h"
#include "fungi/hub/listing.h"
#include "fungi/hub/model_name.h"
#include "fungi/hub/pull.h"

namespace fungi {

// What ends a pull that was asked to stop; what came stays in .part files.
struct PullStopped {};

class HubFetcher {
 public:
  using Progress = std::function<void(size_t done, size_t total)>;

  // Errors: an address that is none, a token that would travel without encryption.
  HubFetcher(const HubModelName& name, const PullOptions& options);

  std::string listing();  // JSON
  const std::string& endpoint() const { return endpoint_.url; }
  // Into `path`, over a part of it that is there. Gives the bytes that came over the network, and
  // fills in what the listing did not tell. Errors: the hub refuses, the sum is wrong twice, the
  // disk is full, another program is fetching the same file.
  uint64_t fetch(HubFile& file, const std::string& commit, const std::filesystem::path& path,
                 const Progress& progress);

 private:
  // Asks until the answer is final. `progressed`: whether the last try brought something.
  GetReply persist(const std::function<GetRequest()>& next,
                   const std::function<bool()>& progressed);
  [[noreturn]] void refuse(const GetReply& reply, const std::string& what) const;
  std::string shown(std::string text) const;  // a server's words, without the token
  void wait(double seconds) const;

  HubModelName name_;
  PullOptions options_;
  HubEndpoint endpoint_;
  std::string token_;
  std::unique_ptr<HubSession> session_;
};

}  // namespace fungi
