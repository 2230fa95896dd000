// SPDX-License-Identifier: Apache-2.0
// What is said once to whoever opens a model: which of several networks of the file it is, and what
// neither the file nor what lies beside it tells of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fungi/backbone/timm_architectures.h"

namespace fungi {
namespace {

// Whether the network's own configuration, or the name of its architecture, describes it.
bool is_described(const NameReader& names, const Architecture& a) {
  if (a.dialect == "huggingface") return names.has_config();
  return names.checkpoint().beside("open_clip_config.json") != "" ||
         find_timm_architecture(names, a);
}

// Facts in which families with these tensors differ, with the value that is taken for each.
std::vector<std::string> assumed_facts(const NameReader& names, const Architecture& a) {
  std::vector<std::string> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!names.stated(name)) facts.push_back(fmt::format("{}={}", name, value));
  };
  if (a.heads_assumed) add("heads", std::to_string(a.heads));
  if (a.dialect == "timm" && names.has("blocks.0.gamma_1") && !a.rotary &&
      !names.stated("family") && !is_described(names, a))
    facts.push_back("that no positions are rotary (as in DeiT-III, not in timm's rope_ape)");
  if (a.dialect == "ast" || a.dialect == "ssast") {
    facts.push_back(
        fmt::format("that its patches start every {} bins and {} frames", a.stride_h, a.stride_w));
    add("size", fmt::format("{}x{}", a.input_h, a.input_w));
  }
  // Of the other families and dialects all known models have the same.
  const bool open = a.dialect == "huggingface" || (a.dialect == "timm" && a.family == "vit");
  if (!open || is_described(names, a)) return facts;
  const auto told = [&](const char* key) {
    return names.config_has(("/" + std::string(key)).c_str()) ||
           names.config_has(("/model_args/" + std::string(key)).c_str());
  };
  if (a.family != "clip" && !told("act_layer")) add("activation", to_string(a.activation));
  if (a.input != InputKind::token_ids && !a.norm_after_pooling && !told("global_pool"))
    add("pooling", to_string(a.pooling));
  add("norm_epsilon", fmt::format("{:g}", a.norm_epsilon));
  return facts;
}

}  // namespace

std::vector<std::string> notes_on(const NameReader& names, const Architecture& a) {
  std::vector<std::string> notes;
  if (const auto decoder = decoder_of(names, a); !decoder.empty())
    notes.push_back(
        fmt::format("the embedding is that of the {}encoder; the decoder of model_type {} is left "
                    "aside (tensors '{}')",
                    a.input == InputKind::image ? "image " : "",
                    names.config_whole_type().value_or(a.family), fmt::join(decoder, "', '")));
  if (!names.other_networks().empty() && !names.stated("prefix") && !names.stated("part"))
    notes.push_back(fmt::format(
        "the checkpoint holds several networks; that under '{}' is used, not '{}': state "
        "`stated_facts[part]` or `stated_facts[prefix]` for another",
        names.full(""), fmt::join(names.other_networks(), "', '")));
  std::vector<std::string> facts = assumed_facts(names, a);
  const std::string processor = "preprocessor_config.json";
  std::string file = "config.json", stated = "what is otherwise";
  if (a.input == InputKind::filter_bank && a.sound.assumed) {
    file = a.dialect == "huggingface" ? processor : file;
    facts.push_back(fmt::format("the mean and std of its filter banks ({:g} and {:g})",
                                a.sound.front_end.mean, a.sound.front_end.std));
  }
  if (a.input == InputKind::image && a.preprocess.assumed) {
    if (a.dialect == "huggingface") file = facts.empty() ? processor : file + " and " + processor;
    facts.push_back(fmt::format("its evaluation transform ({})", a.preprocess.source));
    stated += " (of the transform mean, std, resize and interpolation)";
  }
  // Those that come without any file beside them.
  const bool alone = a.dialect == "ast" || a.dialect == "ssast" || a.dialect == "kwt";
  const std::string advice =
      alone ? "State " + stated : fmt::format("Keep its {} beside it, or state {}", file, stated);
  if (!facts.empty())
    notes.push_back(
        fmt::format("nothing in the checkpoint or beside it tells {}: {} assumed. {} with "
                    "`stated_facts`",
                    fmt::join(facts, ", "), facts.size() == 1 ? "that is" : "these are", advice));
  return notes;
}

}  // namespace fungi
