// SPDX-License-Identifier: Apache-2.0
// What a store is, for people (to_text) and for programs (to_json).
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/store/shards.h"
#include "fungi/store/store.h"
#include "fungi/store/text.h"
#include "fungi/store/update.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using store::Json;

std::string size_text(uintmax_t bytes) {
  const char* units[] = {"bytes", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit < 4) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace

StoreInfo describe_store(const fs::path& folder, size_t first_rows) {
  const Store opened = Store::open(folder, /*allow_partial=*/true);
  StoreInfo info;
  info.folder = folder.string();
  info.manifest = opened.manifest();
  std::unordered_set<std::string> known(opened.ids().begin(), opened.ids().end());
  for (const fs::path& update : store::list_updates(folder)) {
    ++info.pending_updates;
    for (size_t shard : store::list_shards(update))
      for (store::Row& row : store::read_rows(update / store::rows_file(shard), true))
        info.waiting_rows += known.insert(std::move(row.id)).second;
  }
  store::guarded([&] {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) info.bytes += entry.file_size();
    }
  });
  for (size_t i = 0; i < std::min(first_rows, opened.rows()); ++i) {
    info.first_rows.push_back({opened.ids()[i], opened.class_name(i), opened.labels()[i]});
  }
  info.first_failed = opened.failed();
  info.first_failed.resize(std::min(first_rows, info.first_failed.size()));
  return info;
}

std::string to_text(const StoreInfo& info) {
  const StoreManifest& m = info.manifest;
  // Names are bytes that somebody else chose: none may steer the terminal.
  std::string text = fmt::format("{}: {} rows", printable(info.folder), m.rows());
  if (m.failed > 0) text += fmt::format(", {} failed", m.failed);
  text += fmt::format(" of {} samples, {}\n", m.samples, size_text(info.bytes));
  if (m.part) text += fmt::format("part       {}: 'merge' joins all parts\n", to_string(m.part->part));
  if (!m.complete || info.pending_updates > 0) {
    text += m.complete ? "a rewrite is not finished" : "not finished";
    if (info.waiting_rows > 0) text += fmt::format(" ({} more rows wait)", info.waiting_rows);
    text += ": repeat the extraction to go on\n";
  }
  text += fmt::format("pipeline   {}\n", m.spec.pipeline);
  for (const StoreBlock& block : m.spec.blocks) {
    const std::string rows = block.rows == 1 ? "" : fmt::format("{}, ", block.rows);
    const std::string weight = block.weight == 1 ? "" : fmt::format(", weight {:g}", block.weight);
    text += fmt::format("block      {} [{}, {}{}] {}{}\n", block.name, m.rows(), rows, block.width,
                        to_string(m.spec.type), weight);
  }
  text += fmt::format("classes    {}\n", m.classes.size());
  text += fmt::format("model      {} (sha256 {})\n", m.spec.model_path, m.spec.model_sha256);
  text += fmt::format("network    {}\n", m.spec.architecture);
  text += fmt::format("precision  {}\n", m.spec.precision);
  for (const StoreOrigin& origin : m.origins) {
    text += fmt::format("made by    fungi {} on {}\n", origin.version, origin.isa);
  }
  text += fmt::format("settings   {}\n", m.spec.settings);
  for (const StoreState& state : m.state) {
    text += fmt::format("state      {} [{}, {}]\n", state.name, state.rows, state.cols);
  }
  text += fmt::format("shards     {} of up to {} samples\n", m.shards.size(), m.shard_size);
  if (!info.first_rows.empty()) text += "first rows\n";
  for (size_t i = 0; i < info.first_rows.size(); ++i) {
    const auto& row = info.first_rows[i];
    text += fmt::format("  {}  {}", i, printable(row.id));
    if (row.label >= 0) text += fmt::format("  {} ({})", row.label, printable(row.class_name));
    text += "\n";
  }
  if (!info.first_failed.empty()) text += "failed\n";
  for (const auto& failed : info.first_failed) {
    text +=
        fmt::format("  {}  {}: {}\n", printable(failed.id), failed.stage, printable(failed.reason));
    if (!failed.hint.empty()) text += fmt::format("      hint: {}\n", printable(failed.hint));
  }
  return text;
}

std::string to_json(const StoreInfo& info) {
  Json json = {{"folder", store::to_json_string(info.folder)},
               {"bytes", info.bytes},
               {"pending_updates", info.pending_updates},
               {"waiting_rows", info.waiting_rows}};
  json["manifest"] = store::parse(to_json(info.manifest), info.folder);
  Json rows = Json::array(), failed = Json::array();
  for (const auto& row : info.first_rows) {
    Json line = {{"id", store::to_json_string(row.id)}};
    if (row.label >= 0) {
      line["label"] = row.label;
      line["class"] = store::to_json_string(row.class_name);
    }
    rows.push_back(std::move(line));
  }
  for (const auto& sample : info.first_failed) {
    Json line = {{"id", store::to_json_string(sample.id)},
                 {"stage", store::to_json_string(sample.stage)},
                 {"reason", store::to_json_string(sample.reason)}};
    if (!sample.hint.empty()) line["hint"] = store::to_json_string(sample.hint);
    failed.push_back(std::move(line));
  }
  json["first_rows"] = std::move(rows);
  json["first_failed"] = std::move(failed);
  return store::dump(json, 1);
}

}  // namespace fungi
