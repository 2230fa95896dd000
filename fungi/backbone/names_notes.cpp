// SPDX-License-Identifier: Apache-2.0
// What is said once to whoever opens a model: which of several networks of the file it is, and what
// neither the file nor what lies beside it tells of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

// Whether a configuration of its own describes the network.
bool is_described(const NameReader& names, const Architecture& a) {
  if (a.dialect == "huggingface") return names.has_config();
  return names.config_text("/architecture") ||
         names.checkpoint().beside("open_clip_config.json") != "";
}

// Facts in which families with these tensors differ, with the value that is taken for each.
std::vector<std::string> assumed_facts(const NameReader& names, const Architecture& a) {
  std::vector<std::string> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!names.stated(name)) facts.push_back(fmt::format("{}={}", name, value));
  };
  if (a.heads_assumed) add("heads", std::to_string(a.heads));
  // Of the other families and dialects all known models have the same.
  const bool open = a.dialect == "huggingface" || (a.dialect == "timm" && a.family == "vit");
  if (!open || is_described(names, a)) return facts;
  if (a.family != "clip") add("activation", to_string(a.activation));
  if (a.input != InputKind::token_ids && !a.norm_after_pooling)
    add("pooling", to_string(a.pooling));
  add("norm_epsilon", fmt::format("{:g}", a.norm_epsilon));
  return facts;
}

}  // namespace

std::vector<std::string> notes_on(const NameReader& names, const Architecture& a) {
  std::vector<std::string> notes;
  if (const auto decoder = decoder_of(names); !decoder.empty())
    notes.push_back(fmt::format(
        "the embedding is that of the image encoder; the decoder of model_type {} is left aside "
        "(tensors '{}')",
        *names.config_whole_type(), fmt::join(decoder, "', '")));
  if (!names.other_networks().empty() && !names.stated("prefix") && !names.stated("part"))
    notes.push_back(fmt::format(
        "the checkpoint holds several networks; that under '{}' is used, not '{}': state "
        "`stated_facts[part]` or `stated_facts[prefix]` for another",
        names.full(""), fmt::join(names.other_networks(), "', '")));
  if (const auto facts = assumed_facts(names, a); !facts.empty())
    notes.push_back(fmt::format(
        "nothing in the checkpoint or beside it tells {}, which {} assumed: keep its config.json "
        "beside it, or state what is otherwise with `stated_facts`",
        fmt::join(facts, ", "), facts.size() == 1 ? "is" : "are"));
  return notes;
}

}  // namespace fungi
