// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/bank_files.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/json_fields.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/store/difference.h"

namespace fungi::segment {
namespace {

constexpr const char* kFormat = "fungi-bank";
constexpr size_t kVersion = 1;
constexpr const char* kAgain = "remove the folder and build the bank again";

nlohmann::ordered_json spec_json(const BankSpec& spec) {
  return {{"width", spec.width},
          {"classes", spec.classes},
          {"settings", nlohmann::json::parse(spec.settings)}};
}

}  // namespace

std::string to_json(const BankState& state) {
  nlohmann::ordered_json failed = nlohmann::ordered_json::array();
  for (const BankFailure& f : state.failed)
    failed.push_back({{"id", f.id}, {"reason", f.reason}, {"hint", f.hint}});
  nlohmann::ordered_json json{{"format", kFormat}, {"version", kVersion}};
  json.update(spec_json(state.spec));
  json["steps"] = state.steps;
  json["rows"] = state.rows;
  json["label_entries"] = state.entries;
  json["failed"] = failed;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

BankState read_state(const std::filesystem::path& file) {
  const std::string place = file.string();
  const nlohmann::json json = parse_json(FileBytes::map(file)->text());
  JsonFields fields(json, "", place);
  BankState state;
  std::string format;
  size_t version = 0;
  fields.read("format", format);
  if (format != kFormat) fields.refuse("format", fmt::format("'{}'", kFormat));
  fields.read("version", version);
  if (version != kVersion)
    fail(fmt::format("expected version {} of a bank, found {}", kVersion, version), place, kAgain);
  fields.read("width", state.spec.width);
  fields.read("classes", state.spec.classes);
  if (state.spec.width == 0) fields.refuse("width", "at least 1");
  if (state.spec.classes == 0 || state.spec.classes > 256) fields.refuse("classes", "1 to 256");
  state.spec.settings = fields.value("settings").dump();
  fields.read("steps", state.steps);
  fields.read("rows", state.rows);
  fields.read("label_entries", state.entries);
  const nlohmann::json& failed = fields.value("failed");
  if (!failed.is_array()) fields.refuse("failed", "a list");
  for (size_t i = 0; i < failed.size(); ++i) {
    JsonFields one(failed[i], fmt::format("failed[{}]", i), place);
    BankFailure f;
    one.read("id", f.id);
    one.read("reason", f.reason);
    one.read("hint", f.hint);
    state.failed.push_back(std::move(f));
  }
  return state;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown);
}

void require_same(const BankSpec& wanted, const BankSpec& found,
                  const std::filesystem::path& file) {
  const auto as_store = [](const BankSpec& spec) {
    return store::Json::parse(spec_json(spec).dump());
  };
  if (const auto difference = store::first_difference(as_store(wanted), as_store(found)))
    store::fail_different(*difference, file.string(),
                          "use the same settings, write elsewhere, or remove the folder");
}

}  // namespace fungi::segment
