// SPDX-License-Identifier: Apache-2.0
// What stands around every text.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/token/part_json.h"
#include "fungi/token/parts.h"
#include "fungi/token/vocabulary.h"

namespace fungi::token {
namespace {

int32_t pair_id(PartFields& part, const char* name) {  // ["</s>", 2]
  const nlohmann::json& pair = part.value(name);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
    part.refuse(name, "a token with its id");
  return checked_id(pair[1], pair[0].get<std::string>(), part.place());
}

void append_special(PartFields& part, const std::string& name, std::vector<int32_t>& ids) {
  const nlohmann::json& all = part.value("special_tokens");
  if (!all.is_object() || !all.contains(name) || !all[name].is_object() ||
      !all[name].contains("ids") || !all[name]["ids"].is_array())
    part.refuse("special_tokens", fmt::format("an object with the ids of '{}'", name));
  for (const nlohmann::json& id : all[name]["ids"])
    ids.push_back(checked_id(id, name, part.place()));
}

Around read_template(PartFields& part) {
  Around around;
  bool behind = false;
  const nlohmann::json& list = part.value("single");
  for (const nlohmann::json& each : list.is_array() ? list : nlohmann::json::array({0})) {
    const bool known = each.is_object() && each.size() == 1 && each.begin()->is_object() &&
                       each.begin()->contains("id") && each.begin()->at("id").is_string();
    const std::string kind = known ? each.begin().key() : "";
    const std::string id = known ? each.begin()->at("id").get<std::string>() : "";
    if (kind == "Sequence" && id == "A" && !behind)
      behind = true;
    else if (kind == "SpecialToken")
      append_special(part, id, behind ? around.behind : around.before);
    else
      part.refuse("single", "special tokens around one sequence A");
  }
  if (!behind) part.refuse("single", "special tokens around one sequence A");
  part.leave("pair");
  part.leave("special_tokens");
  return around;
}

Around read_sequence(PartFields& part) {
  const nlohmann::json& list = part.value("processors");
  if (!list.is_array()) part.refuse("processors", "a list");
  Around all;
  for (const nlohmann::json& each : list) {
    const Around next = read_post_processor(each, part.place());
    all.before.insert(all.before.begin(), next.before.begin(), next.before.end());
    all.behind.insert(all.behind.end(), next.behind.begin(), next.behind.end());
  }
  return all;
}

Around make(PartFields& part) {
  const std::string& type = part.type();
  for (const char* left : {"trim_offsets", "add_prefix_space"}) part.leave(left);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return {{pair_id(part, "cls")}, {pair_id(part, "sep")}};
  if (type == "TemplateProcessing") return read_template(part);
  if (type == "Sequence") return read_sequence(part);
  if (type == "ByteLevel") {
    part.leave("use_regex");
    return {};
  }
  part.refuse_type();
}

}  // namespace

Around read_post_processor(const nlohmann::json& json, const std::string& place) {
  if (json.is_null()) return {};
  PartFields part(json, "post_processor", place);
  Around around = make(part);
  part.finish();
  return around;
}

}  // namespace fungi::token
