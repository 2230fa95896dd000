// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as what a hub says of a model, as the index of its shards, and as a
// name. Whatever is wanted of it stays in its folder.
#include <cstdlib>
#include <filesystem>

#include "fungi/base/error.h"
#include "fungi/hub/listing.h"
#include "fungi/hub/model_name.h"

namespace {

void require_inside(const fungi::HubFile& file) {
  const std::filesystem::path folder = "/models/one";
  const auto path = (folder / file.name).lexically_normal().string();
  if (!path.starts_with("/models/one/") || path.find('\0') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const fungi::HubModelName name = fungi::parse_model_name(text);
    require_inside({.name = fungi::folder_name(name.id)});
    if (fungi::folder_name(name.id).find('/') != std::string::npos) std::abort();
    require_inside({.name = fungi::url_encoded(name.revision)});
  } catch (const fungi::Error&) {
  }
  try {
    const fungi::HubListing listing = fungi::parse_listing(text, "fuzz");
    for (const fungi::HubFile& file : listing.files) require_inside(file);
    const fungi::HubChoice choice = fungi::choose_files(listing, "", "fuzz");
    for (const fungi::HubFile& file : fungi::shards_of(text, choice, listing, "fuzz"))
      require_inside(file);
  } catch (const fungi::Error&) {
  }
  return 0;
}
