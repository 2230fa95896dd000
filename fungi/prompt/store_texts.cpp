// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/store_texts.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/feature/modality.h"

namespace fungi {

void require_texts(const Store& store) {
  const StoreSpec& spec = store.manifest().spec;
  if (!has_settings(spec)) return;
  const SampleKind kind = sample_kind(read_settings(spec, store.folder().string()).input);
  if (kind != SampleKind::text && kind != SampleKind::own)
    fail(fmt::format("expected a store of texts, found one of {}s", to_string(kind)),
         store.folder().string(),
         "prompts are made of texts: `extract` some with a model of texts");
}

StoreTexts::StoreTexts(const Store& store, std::unique_ptr<Dataset> data, const std::string& word)
    : data_(std::move(data)) {
  require_texts(store);
  std::unordered_map<std::string_view, size_t> by_id;
  by_id.reserve(data_->size());
  for (size_t i = 0; i < data_->size(); ++i) by_id.emplace(data_->id(i), i);
  const std::vector<std::string>&ids = store.ids(), &keys = store.keys();
  place_.reserve(ids.size());
  for (size_t row = 0; row < ids.size(); ++row) {
    const auto at = by_id.find(ids[row]);
    if (at == by_id.end())
      fail(fmt::format("the store has the sample '{}', the data set does not", ids[row]),
           store.folder().string(),
           fmt::format("give the data set that the store was made of as {}, its columns among it",
                       word));
    if (row < keys.size() && !keys[row].empty() && keys[row] != data_->key(at->second))
      fail(fmt::format("the text of the sample '{}' is not the one that was extracted", ids[row]),
           store.folder().string(),
           fmt::format("give the data set that the store was made of as {}; where it has changed, "
                       "repeat the extraction",
                       word));
    place_.push_back(at->second);
  }
}

std::string StoreTexts::text(size_t row) const {
  const size_t i = place_.at(row);
  return text_of(data_->decode(i, data_->read(i))).utf8;
}

}  // namespace fungi
