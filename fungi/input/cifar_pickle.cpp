// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/cifar_pickle.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/pickle.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr size_t kPixels = 3072;
constexpr const char* kAgain =
    "give the Python or binary version of CIFAR-10 or CIFAR-100 as it "
    "is published";

Pickle open_pickle(std::string_view bytes, const fs::path& file) {
  try {
    return unpickle(bytes, file.string());
  } catch (const Error& e) {
    fail(fmt::format("expected a batch of CIFAR: {}", e.message()), e.place(), kAgain);
  }
}

const PickleValue* entry(const Pickle& pickle, const char* key) {
  const PickleValue& root = pickle[pickle.root];
  if (root.kind != Kind::dict) return nullptr;
  for (size_t i = 0; i + 1 < root.items.size(); i += 2)
    if (pickle.is_text(root.items[i], key)) return &pickle[root.items[i + 1]];
  return nullptr;
}

// The bytes of a numpy array: the last text in the state that it was given.
std::string_view array_bytes(const Pickle& pickle, const PickleValue* value) {
  if (!value || value->kind != Kind::object) return {};
  for (const uint32_t item : value->items) {
    const PickleValue& state = pickle[item];
    if (state.kind == Kind::sequence && !state.items.empty())
      if (const PickleValue& last = pickle[state.items.back()]; last.kind == Kind::text)
        return last.text;
  }
  return {};
}

}  // namespace

CifarBatch read_cifar_batch(const fs::path& file) {
  const auto bytes = FileBytes::map(file);
  const Pickle pickle = open_pickle(bytes->text(), file);
  CifarBatch batch;
  const PickleValue* labels = entry(pickle, "labels");
  if (!labels) labels = entry(pickle, "fine_labels"), batch.hundred = true;
  const std::string_view pixels = array_bytes(pickle, entry(pickle, "data"));
  if (!labels || labels->kind != Kind::sequence || labels->items.empty())
    fail("expected a list 'labels' or 'fine_labels', found none", file.string(), kAgain);
  const size_t count = labels->items.size();
  if (pixels.size() / kPixels != count || pixels.size() % kPixels != 0)
    fail(fmt::format("expected {} bytes of pixels for each of {} labels, found {} in all", kPixels,
                     count, pixels.size()),
         file.string(), kAgain);
  for (const uint32_t item : labels->items) {
    const PickleValue& label = pickle[item];
    if (label.kind != Kind::integer || label.integer < 0 ||
        label.integer >= (batch.hundred ? 100 : 10))
      fail(fmt::format("record {} has an impossible label", batch.labels.size()), file.string(),
           kAgain);
    batch.labels.push_back(int(label.integer));
  }
  batch.offset = uint64_t(pixels.data() - bytes->text().data());
  return batch;
}

std::vector<std::string> read_cifar_names(const fs::path& file) {
  const auto bytes = FileBytes::map(file);
  const Pickle pickle = open_pickle(bytes->text(), file);
  const PickleValue* names = entry(pickle, "label_names");
  if (!names) names = entry(pickle, "fine_label_names");
  std::vector<std::string> out;
  if (names && names->kind == Kind::sequence)
    for (const uint32_t item : names->items) out.emplace_back(pickle[item].text);
  if (out.empty()) fail("expected a list of names, found none", file.string(), kAgain);
  return out;
}

}  // namespace fungi::dataset
