// SPDX-License-Identifier: Apache-2.0
#include "fungi/store/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/store/text.h"

namespace fungi::store {

std::string block_file(std::string_view block, size_t shard) {
  return fmt::format("{}-{:05}.npy", block, shard);
}
std::string rows_file(size_t shard) { return fmt::format("rows-{:05}.jsonl", shard); }
std::string failed_file(size_t shard) { return fmt::format("failed-{:05}.jsonl", shard); }
std::string state_file(std::string_view name) { return fmt::format("{}/{}.npy", kState, name); }

size_t shard_number(std::string_view file, std::string_view stem, std::string_view suffix) {
  if (file.size() != stem.size() + 6 + suffix.size() || !file.starts_with(stem) ||
      file[stem.size()] != '-' || !file.ends_with(suffix)) {
    return kMaxShards;
  }
  size_t number = 0;
  for (char c : file.substr(stem.size() + 1, 5)) {
    if (c < '0' || c > '9') return kMaxShards;
    number = number * 10 + static_cast<size_t>(c - '0');
  }
  return number;
}

std::vector<Path> list_failed(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (shard_number(entry.path().filename().native(), "failed", ".jsonl") < kMaxShards)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<FailedSample> read_all_failed(const Path& folder) {
  std::vector<FailedSample> all = read_failed(folder / kFailed);
  for (const Path& file : list_failed(folder))
    for (FailedSample& sample : read_failed(file)) all.push_back(std::move(sample));
  return all;
}

std::vector<size_t> list_shards(const Path& folder) {
  std::vector<size_t> numbers;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const size_t number = shard_number(entry.path().filename().native(), "rows", ".jsonl");
    if (number < kMaxShards) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

namespace {

constexpr char kDamaged[] = "restore this file, or delete it and extract again";

std::string line_place(const Path& file, size_t line) {
  return fmt::format("{} line {}", file.string(), line);
}

std::string text_of(const Json& object, const char* name, const std::string& place, bool required) {
  const auto found = object.find(name);
  if (found == object.end()) {
    if (required) fail(fmt::format("the field '{}' is missing", name), place);
    return "";
  }
  if (!found->is_string()) fail(fmt::format("the field '{}' should be a string", name), place);
  return from_json_string(found->get_ref<const std::string&>());
}

// Calls use(object, place) for every line; the last one may lack its end only if `torn` allows it,
// and is then left out.
template <class Use>
void for_each_line(const Path& file, bool torn, const Use& use) {
  const std::string text = read_text(file);
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string place = line_place(file, ++line);
    if (end == std::string::npos) {
      if (torn) return;
      fail("the last line has no end: the file was cut", place, kRepeat);
    }
    const Json object = parse(std::string_view(text).substr(begin, end - begin), place, kDamaged);
    if (!object.is_object()) fail("expected a JSON object", place, kDamaged);
    use(object, place);
    begin = end + 1;
  }
}

}  // namespace

std::string row_line(const Row& row) {
  Json json = {{"id", to_json_string(row.id)}};
  if (row.label >= 0) json["label"] = row.label;
  if (!row.class_name.empty()) json["class"] = to_json_string(row.class_name);
  if (!row.key.empty()) json["key"] = to_json_string(row.key);
  return dump(json) + "\n";
}

std::vector<Row> read_rows(const Path& file, bool torn) {
  std::vector<Row> rows;
  if (!std::filesystem::exists(file)) fail("the file is missing", file.string(), kRepeat);
  for_each_line(file, torn, [&](const Json& json, const std::string& place) {
    Row row;
    row.id = text_of(json, "id", place, true);
    if (const auto label = json.find("label"); label != json.end()) {
      if (!label->is_number_integer()) fail("the label should be an integer", place);
      row.label = label->get<int64_t>();
    }
    row.class_name = text_of(json, "class", place, false);
    row.key = text_of(json, "key", place, false);
    rows.push_back(std::move(row));
  });
  return rows;
}

std::string failed_line(const FailedSample& sample) {
  Json json = {{"id", to_json_string(sample.id)},
               {"stage", to_json_string(sample.stage)},
               {"reason", to_json_string(sample.reason)}};
  if (!sample.hint.empty()) json["hint"] = to_json_string(sample.hint);
  if (!sample.key.empty()) json["key"] = to_json_string(sample.key);
  return dump(json) + "\n";
}

std::vector<FailedSample> read_failed(const Path& file) {
  std::vector<FailedSample> failed;
  if (!std::filesystem::exists(file)) return failed;
  for_each_line(file, /*torn=*/true, [&](const Json& json, const std::string& place) {
    failed.push_back({text_of(json, "id", place, true), text_of(json, "stage", place, true),
                      text_of(json, "reason", place, true), text_of(json, "hint", place, false),
                      text_of(json, "key", place, false)});
  });
  return failed;
}

}  // namespace fungi::store
