// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/combinations.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"

namespace fungi {
namespace {

std::vector<std::string> steps(const std::vector<std::string>& blocks) {
  std::vector<std::string> list;
  for (const std::string& block : blocks)
    list.push_back(list.empty() ? block : list.back() + "+" + block);
  return list;
}

std::vector<std::string> all(const std::vector<std::string>& blocks) {
  constexpr size_t kMost = 10;
  if (blocks.size() > kMost)
    fail(fmt::format("{} blocks have too many combinations", blocks.size()), "`all_combinations`",
         "name one with `features`");
  std::vector<std::string> list;
  for (size_t mask = 1; mask < size_t{1} << blocks.size(); ++mask) {
    std::string name;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (mask >> i & 1) name += (name.empty() ? "" : "+") + blocks[i];
    list.push_back(name);
  }
  return list;
}

std::vector<std::string> overview(const std::vector<std::string>& blocks) {
  if (blocks.size() <= kMostCombined) {
    std::vector<std::string> list = all(blocks);
    const auto joints = [](const std::string& name) {
      return std::count(name.begin(), name.end(), '+');
    };
    std::stable_sort(list.begin(), list.end(), [&](const std::string& a, const std::string& b) {
      return joints(a) < joints(b);
    });
    return list;
  }
  std::vector<std::string> list = blocks;
  const std::vector<std::string> more = steps(blocks);
  list.insert(list.end(), more.begin() + 1, more.end());
  return list;
}

}  // namespace

std::vector<std::string> combinations(const std::vector<std::string>& blocks, Combine rule) {
  return rule == Combine::steps ? steps(blocks)
         : rule == Combine::all ? all(blocks)
                                : overview(blocks);
}

}  // namespace fungi
