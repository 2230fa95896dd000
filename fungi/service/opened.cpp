// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/opened.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/feature/modality.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/service/refused.h"

namespace fungi::service {
namespace {

constexpr size_t kCombinations = 8;  // of features that are kept at once

}  // namespace

SharedExtractor::SharedExtractor(std::shared_ptr<const Database> rows, std::filesystem::path model)
    : manifest_(rows->reduction().origin()), model_(std::move(model)), rows_(std::move(rows)) {}

Reopened& SharedExtractor::get(Pool& pool) {
  const std::lock_guard lock(mutex_);
  if (!reopened_) {
    ReopenOptions options;
    options.model = model_;
    reopened_.emplace(rows_->reopen(pool, std::move(options)));
    rows_ = nullptr;
    ready_ = true;
  }
  return *reopened_;
}

bool SharedExtractor::makes_rows_of(const StoreManifest& other,
                                    const std::filesystem::path& model) const {
  if (model_ != model) return false;
  const StoreSpec &a = manifest_.spec, &b = other.spec;
  const auto same_state = [](const StoreState& x, const StoreState& y) {
    return x.name == y.name && x.checksum == y.checksum;
  };
  return a.settings == b.settings && a.architecture == b.architecture &&
         a.model_sha256 == b.model_sha256 && a.model_path == b.model_path && a.blocks == b.blocks &&
         a.type == b.type && a.pipeline == b.pipeline && a.precision == b.precision &&
         std::equal(manifest_.state.begin(), manifest_.state.end(), other.state.begin(),
                    other.state.end(), same_state);
}

Opened::Opened(const ServedStore& source, size_t memory, uint64_t version,
               const std::vector<std::shared_ptr<const Opened>>& others, Pool& pool)
    : source_(source), memory_(memory), version_(version) {
  const DatabaseOptions options{.memory = memory_};
  if (fungi::is_index(source_.path)) {
    all_ = open_database(source_.path, options, pool);
  } else {
    store_ = std::make_shared<const Store>(Store::open(source_.path));
    all_ = open_database(store_, options, pool);
  }
  if (has_settings(manifest().spec))
    kind_ = sample_kind(read_settings(manifest().spec, source_.name).input);
  const auto alike = std::find_if(others.begin(), others.end(), [&](const auto& other) {
    return other->extractor_->makes_rows_of(manifest(), source_.model);
  });
  extractor_ = alike != others.end() ? (*alike)->extractor_
                                     : std::make_shared<SharedExtractor>(all_, source_.model);
  by_class_.resize(manifest().classes.size());
  for (size_t row = 0; row < all_->rows(); ++row) {
    const int64_t label = all_->label(row);
    if (label < 0) {
      ++without_label_;
      continue;
    }
    if (size_t(label) >= by_class_.size()) {
      if (size_t(label) > all_->rows())
        fail(fmt::format("row {} has the label {}, which is no class", row, label), source_.name,
             "extract it again");
      by_class_.resize(size_t(label) + 1);
    }
    by_class_[size_t(label)].push_back(uint32_t(row));
  }
}

std::string Opened::class_name(int64_t label) const {
  if (label < 0) return "";
  const auto& names = manifest().classes;
  return size_t(label) < names.size() ? names[size_t(label)] : std::to_string(label);
}

std::optional<size_t> Opened::find_class(const std::string& name) const {
  for (size_t c = 0; c < by_class_.size(); ++c)
    if (class_name(int64_t(c)) == name) return c;
  return {};
}

std::shared_ptr<const Database> Opened::database(const std::string& features, Pool& pool) const {
  if (features.empty() || features == all_->reduction().features()) return all_;
  if (!store_)
    throw Refused(400, fmt::format("this index holds {}, not {}", all_->reduction().features(),
                                   features),
                  "leave features out, or serve the store itself", 0, "features");
  const std::vector<StoreBlock> blocks = store_->select(features);
  const std::lock_guard lock(mutex_);
  auto at = std::find_if(others_.begin(), others_.end(),
                         [&](const auto& d) { return d->reduction().blocks() == blocks; });
  if (at == others_.end()) {
    others_.push_front(
        open_database(store_, {.features = features, .memory = memory_}, pool));
    if (others_.size() > kCombinations) others_.pop_back();
    at = others_.begin();
  } else {
    others_.splice(others_.begin(), others_, at);
  }
  return *at;
}

}  // namespace fungi::service
