// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/outside.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/retrieve/feature_index.h"

namespace fungi {

void require_outside(const Store& store, const std::filesystem::path& out) {
  std::error_code unknown;  // what cannot be looked at is elsewhere, or refused when it is written
  const auto whole = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  const auto own = whole(store.folder()), there = whole(out);
  if (std::mismatch(own.begin(), own.end(), there.begin(), there.end()).first == own.end())
    fail("the output would lie in the store itself", out.string(), "choose another folder");
  for (auto folder = there.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (is_store(folder) || is_index(folder))
      fail(fmt::format("the output would lie in a store or an index, {}", folder.string()),
           out.string(), "choose another folder");
}

}  // namespace fungi
