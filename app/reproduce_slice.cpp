// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_slice.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace fungi::app {
namespace {

std::vector<size_t> spread(size_t size, size_t count) {
  std::vector<size_t> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i] = i * size / count;
  return rows;
}

// Rows of so many classes that each has ten in the slice: neighbours need some of their own class.
// All splits have the same classes, if they have the same names.
std::vector<size_t> rows_of_some_classes(const Dataset& all, size_t count) {
  constexpr size_t kOfEach = 10;
  const size_t classes = all.class_names().size();
  std::set<int64_t> chosen;
  for (const size_t c : spread(classes, std::min(classes, std::max<size_t>(2, count / kOfEach))))
    chosen.insert(int64_t(c));
  std::vector<size_t> rows;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen.contains(all.label(i))) rows.push_back(i);
  return rows;
}

class Slice final : public Dataset {
 public:
  Slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place, std::vector<size_t> rows)
      : all_(std::move(all)), rows_(std::move(rows)) {
    samples_ = all_->samples();
    class_names_ = all_->class_names();
    for (const size_t row : rows_) {
      ids_.push_back(all_->id(row));
      labels_.push_back(all_->label(row));
    }
    finish(all_->kind(), place);
  }

  std::vector<uint8_t> read(size_t i) const override { return all_->read(rows_.at(i)); }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    return all_->decode(rows_.at(i), bytes, options);
  }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return all_->stored_bytes(rows_.at(i));
  }
  std::string key(size_t i) const override { return all_->key(rows_.at(i)); }

 private:
  std::unique_ptr<Dataset> all_;
  std::vector<size_t> rows_;
};

class MaskSlice final : public MaskDataset {
 public:
  MaskSlice(std::unique_ptr<MaskDataset> all, const std::filesystem::path& place, size_t count)
      : all_(std::move(all)) {
    class_names_ = all_->class_names();
    ignore_ = all_->ignore(), unmeasured_ = all_->unmeasured();
    rows_ = spread(all_->size(), count);
    for (const size_t row : rows_) ids_.push_back(all_->id(row));
    finish(place);
  }
  Image image(size_t i) const override { return all_->image(rows_.at(i)); }
  Mask mask(size_t i) const override { return all_->mask(rows_.at(i)); }

 private:
  std::unique_ptr<MaskDataset> all_;
  std::vector<size_t> rows_;
};

}  // namespace

std::unique_ptr<MaskDataset> slice(std::unique_ptr<MaskDataset> all,
                                   const std::filesystem::path& place, size_t count) {
  return std::make_unique<MaskSlice>(std::move(all), place, count);
}

std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               size_t count) {
  std::vector<size_t> rows = rows_of_some_classes(*all, count);
  if (rows.empty()) rows = spread(all->size(), all->size());
  std::vector<size_t> some;
  for (const size_t i : spread(rows.size(), std::min(count, rows.size()))) some.push_back(rows[i]);
  return std::make_unique<Slice>(std::move(all), place, std::move(some));
}

std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               const std::vector<std::string>& names) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < all->size(); ++i) ids.push_back(all->id(i));
  std::vector<size_t> rows;
  for (const uint32_t row : rows_of(names, ids, place.string())) rows.push_back(row);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return std::make_unique<Slice>(std::move(all), place, std::move(rows));
}

RevisitedTruth slice_truth(const RevisitedTruth& truth, size_t count) {
  const std::vector<size_t> queries =
      spread(truth.queries.size(), std::min(truth.queries.size(), std::max<size_t>(1, count / 4)));
  count = std::min(count, truth.database.size());
  std::set<uint32_t> kept;  // the first of each list, the second of each, ...
  for (size_t turn = 0; turn < truth.database.size(); ++turn)
    for (const size_t q : queries)
      for (const auto* list : {&truth.records[q].easy, &truth.records[q].hard})
        if (turn < list->size() && kept.size() < count) kept.insert((*list)[turn]);
  for (const size_t row : spread(truth.database.size(), count))
    if (kept.size() < count) kept.insert(uint32_t(row));
  RevisitedTruth out;
  std::map<uint32_t, uint32_t> place;  // in the slice
  for (const uint32_t row : kept) {
    place.emplace(row, uint32_t(out.database.size()));
    out.database.push_back(truth.database.at(row));
  }
  const auto in_slice = [&](const std::vector<uint32_t>& list) {
    std::vector<uint32_t> rows;
    for (const uint32_t row : list)
      if (const auto found = place.find(row); found != place.end()) rows.push_back(found->second);
    return rows;
  };
  for (const size_t q : queries) {
    const RevisitedRecord& record = truth.records[q];
    out.queries.push_back(truth.queries[q]);
    out.records.push_back({in_slice(record.easy), in_slice(record.hard), in_slice(record.junk)});
  }
  return out;
}

std::string to_json(const RevisitedTruth& truth) {
  nlohmann::json out{
      {"imlist", truth.database}, {"qimlist", truth.queries}, {"gnd", nlohmann::json::array()}};
  for (const RevisitedRecord& record : truth.records)
    out["gnd"].push_back({{"easy", record.easy}, {"hard", record.hard}, {"junk", record.junk}});
  return out.dump();
}

}  // namespace fungi::app
