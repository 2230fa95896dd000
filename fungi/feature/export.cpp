// SPDX-License-Identifier: Apache-2.0
// .npz: every block whole, with ids, labels and class names as numpy strings.
#include "fungi/feature/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fungi/base/error.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/feature/store_text.h"

namespace fungi {
namespace {

// numpy's '<U': fixed width, four bytes per character, filled up with zeros. Bytes that are no
// UTF-8 become the lone surrogates that Python's os.fsencode turns back.
struct UnicodeArray {
  std::vector<uint32_t> characters;
  NpyArray array;

  explicit UnicodeArray(const std::vector<std::string>& texts) {
    std::vector<std::u32string> decoded;
    size_t longest = 1;
    for (const std::string& text : texts) {
      decoded.push_back(store::to_code_points(text));
      longest = std::max(longest, decoded.back().size());
    }
    characters.assign(longest * texts.size(), 0);
    for (size_t i = 0; i < decoded.size(); ++i) {
      std::copy(decoded[i].begin(), decoded[i].end(), characters.begin() + ptrdiff_t(i * longest));
    }
    array = {fmt::format("<U{}", longest), {texts.size()}, std::as_bytes(std::span(characters))};
  }
  UnicodeArray(const UnicodeArray&) = delete;
};

}  // namespace

void export_npz(const Store& store, const std::filesystem::path& file) {
  std::vector<FeatureSet> sets;
  std::vector<std::pair<std::string, NpyArray>> arrays;
  for (const StoreBlock& block : store.manifest().spec.blocks) {
    if (block.name == "ids" || block.name == "labels" || block.name == "classes") {
      fail(fmt::format("a block is named '{}', like one of the other arrays", block.name),
           store.folder().string(), "read its .npy files instead");
    }
    sets.push_back(store.load(block.name, /*normalise=*/false));
    arrays.emplace_back(block.name, npy_array(sets.back().features));
  }
  const UnicodeArray ids(store.ids()), classes(store.classes());
  arrays.emplace_back("ids", ids.array);
  arrays.emplace_back("labels", npy_array(store.labels()));
  arrays.emplace_back("classes", classes.array);
  write_npz(file, arrays);
}

}  // namespace fungi
