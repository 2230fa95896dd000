// SPDX-License-Identifier: Apache-2.0
// .npz: every block whole, copied shard by shard, with ids, labels and class names as numpy
// strings.
#include "fungi/store/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/store/text.h"

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
  for (const StoreBlock& block : store.manifest().spec.blocks)
    if (block.name == "ids" || block.name == "labels" || block.name == "classes")
      fail(fmt::format("a block is named '{}', like one of the other arrays", block.name),
           store.folder().string(), "read its .npy files instead");
  NpzWriter writer(behind_links(file));
  auto add = [&](const std::string& name, const NpyArray& array) {
    writer.begin(name, array.descr, array.shape);
    writer.append(array.bytes);
  };
  for (const StoreBlock& block : store.manifest().spec.blocks) {
    std::vector<size_t> shape{store.rows(), block.rows, block.width};
    if (block.rows == 1) shape.erase(shape.begin() + 1);
    writer.begin(block.name, kNpyDescr<float>, shape);
    for (size_t shard = 0; shard < store.shards(); ++shard)
      writer.append(npy_array(store.map(block.name, shard).rows).bytes);
  }
  const UnicodeArray ids(store.ids()), classes(store.classes());
  add("ids", ids.array);
  add("labels", npy_array(store.labels()));
  add("classes", classes.array);
  writer.finish();
}

}  // namespace fungi
