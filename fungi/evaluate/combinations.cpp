// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/combinations.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/store/manifest.h"

namespace fungi {
namespace {

bool are_of_layers(const std::vector<std::string>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](const std::string& block) {
    return !split_layer(block).second.empty();
  });
}

// Gradients of one layer say much the same as those of the next: a sum over layers is no step.
std::vector<std::string> by_layer(const std::vector<std::string>& blocks) {
  std::vector<std::string> list = blocks;
  for (size_t i = 1; i < blocks.size(); ++i) list.push_back(blocks[0] + "+" + blocks[i]);
  return list;
}

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
  if (rule != Combine::all && are_of_layers(blocks)) return by_layer(blocks);
  return rule == Combine::steps ? steps(blocks)
         : rule == Combine::all ? all(blocks)
                                : overview(blocks);
}

}  // namespace fungi
