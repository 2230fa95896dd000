// SPDX-License-Identifier: Apache-2.0
// Which network of a file is meant: training checkpoints hold several, under prefixes of their own.
// And which tensor to ask for when there is none that any dialect knows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Of several networks, these are the ones their authors evaluate.
bool preferred(const std::string& prefix) {
  static const std::set<std::string_view> words{"teacher",      "base_encoder", "ema",
                                                "model_ema",    "ema_model",    "state_dict_ema",
                                                "vision_model", "visual"};
  for (std::string_view rest = prefix; !rest.empty();) {
    const size_t dot = rest.find('.');
    if (words.count(rest.substr(0, dot))) return true;
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
  }
  return false;
}

// All prefixes P for which P + end is a tensor.
std::set<std::string> prefixes_of(const Checkpoint& checkpoint, std::string_view end) {
  std::set<std::string> found;
  for (const TensorInfo& t : checkpoint.tensors()) {
    if (!t.name.ends_with(end)) continue;
    const std::string prefix = t.name.substr(0, t.name.size() - end.size());
    if (prefix.empty() || prefix.back() == '.' || prefix.back() == '/') found.insert(prefix);
  }
  return found;
}

// An anchor that is missing while the rest is there; of several, that of a preferred network.
std::string missing_anchor(const Checkpoint& checkpoint, const Anchors& anchors,
                           std::string_view tower, bool only_preferred) {
  const auto has = [&](const std::string& prefix, std::string_view name) {
    return checkpoint.find(prefix + std::string(name)) != nullptr;
  };
  std::string missing;
  for (const auto& [here, other] :
       {std::pair(anchors.first, anchors.second), std::pair(anchors.second, anchors.first)})
    for (const std::string& p : prefixes_of(checkpoint, std::string(tower) + std::string(here))) {
      const std::string prefix = p + std::string(tower);
      if (!has(prefix, other) && has(prefix, anchors.third) && has(prefix, anchors.fourth) &&
          ((missing.empty() && !only_preferred) || preferred(p)))
        missing = prefix + std::string(other);
    }
  return missing;
}

// The words of a prefix: its folders, or what stands between the underlines of their names.
bool has_word(std::string_view prefix, std::string_view word, std::string_view separators) {
  while (!prefix.empty()) {
    const size_t end = prefix.find_first_of(separators);
    if (prefix.substr(0, end) == word) return true;
    prefix.remove_prefix(end == std::string_view::npos ? prefix.size() : end + 1);
  }
  return false;
}

// The network that is called so: "ema" is "state_dict_ema." where there is no "ema.", and "model"
// is "model." beside "model_ema.".
std::string part_of(const NameReader& names, const std::vector<std::string>& found,
                    const std::string& part) {
  std::vector<std::string> meant;
  for (const char* separators : {"./", "./_"}) {
    if (!meant.empty()) break;
    std::copy_if(found.begin(), found.end(), std::back_inserter(meant),
                 [&](const std::string& prefix) { return has_word(prefix, part, separators); });
  }
  if (meant.size() != 1)
    fail(fmt::format("there {} of the name '{}'",
                     meant.empty() ? "is no network" : "are several networks", part),
         names.checkpoint().path(),
         fmt::format("choose `stated_facts[prefix]=NAME`, one of: '{}'", fmt::join(found, "', '")));
  return meant.front();
}

}  // namespace

bool NameReader::find_network(const Dialect& dialect) {
  for (std::string_view tower : {dialect.tower, std::string_view()})
    if (find_prefix(dialect.anchors, tower)) {
      tower_ = tower;
      root_ = dialect.text ? "" : find_config_root();
      return true;
    }
  return false;
}

bool NameReader::find_prefix(const Anchors& anchors, std::string_view tower) {
  const std::string first = std::string(tower) + std::string(anchors.first),
                    second = std::string(tower) + std::string(anchors.second);
  std::vector<std::string> found, better;
  for (const std::string& prefix : prefixes_of(checkpoint_, first))
    if (checkpoint_.find(prefix + second)) found.push_back(prefix);
  if (found.empty()) return false;
  if (const auto wanted = stated("prefix")) {
    for (const std::string& p : found)
      if (p == *wanted || p == *wanted + ".") return take(p, found), true;
    fail(fmt::format("there is no network under '{}'", *wanted), checkpoint_.path(),
         fmt::format("choose `stated_facts[prefix]=NAME`, one of: '{}'", fmt::join(found, "', '")));
  }
  if (const auto part = stated("part")) return take(part_of(*this, found, *part), found), true;
  std::copy_if(found.begin(), found.end(), std::back_inserter(better), preferred);
  if (better.empty()) {  // with half of the teacher there, the student is not meant
    const std::string missing = missing_anchor(checkpoint_, anchors, tower, true);
    if (!missing.empty()) refuse_missing(*this, missing);
  }
  if (found.size() > 1) {
    if (better.size() != 1)
      fail(fmt::format("the file holds {} networks", found.size()), checkpoint_.path(),
           fmt::format("choose `stated_facts[prefix]=NAME`, one of: '{}'",
                       fmt::join(found, "', '")));
  }
  take(better.empty() ? found.front() : better.front(), found);
  return true;
}

void NameReader::take(const std::string& prefix, const std::vector<std::string>& found) {
  prefix_ = prefix;
  others_.clear();
  std::copy_if(found.begin(), found.end(), std::back_inserter(others_),
               [&](const std::string& other) { return other != prefix; });
}

void refuse_missing(const NameReader& names, const std::string& tensor) {
  fail("the tensor is missing", fmt::format("{}: {}", names.checkpoint().path(), printable(tensor)),
       "the file is incomplete or of another architecture");
}

void refuse_own_code(const Checkpoint& checkpoint) {
  const nlohmann::json config = json_beside(checkpoint, "config.json");
  if (config.is_null() || !config.contains("auto_map") || !config["auto_map"].is_object()) return;
  const auto model = config["auto_map"].find("AutoModel");
  if (model == config["auto_map"].end() || !model->is_string()) return;
  const auto type = config.find("model_type");
  fail(fmt::format(
           "the model_type '{}' is computed by code of its own ('{}'), which is not run here",
           type != config.end() && type->is_string() ? printable(type->get<std::string>()) : "",
           printable(model->get<std::string>())),
       fmt::format("{}: config.json", checkpoint.path()),
       "`models` lists the families; where it is one of them after all, take auto_map out of "
       "config.json");
}

void refuse_unknown(const Checkpoint& checkpoint) {
  refuse_own_code(checkpoint);
  const char* hint = "`models` lists the families; `inspect` with `tensors` lists the tensors";
  if (!prefixes_of(checkpoint, "layers.0.attention.q_proj.weight").empty() &&
      !prefixes_of(checkpoint, "embeddings.cls_token").empty())
    fail(
        "these are the names that a ViT has in the memory of transformers 5, expected those that "
        "it writes to files",
        checkpoint.path(),
        "save it with model.save_pretrained() in place of torch.save(model.state_dict())");
  const auto all = dialects();
  for (auto d = all.rbegin(); d != all.rend(); ++d)  // EVA before timm, CLIP before SigLIP,
                                                     // most of whose names they have
    if (const std::string missing = missing_anchor(checkpoint, (**d).anchors, "", false);
        !missing.empty())
      fail(
          fmt::format("the tensor is missing; the other names are nearly those of {}", (**d).whose),
          fmt::format("{}: {}", checkpoint.path(), printable(missing)),
          std::string("the file is incomplete or of another architecture. ") + hint);
  const auto& tensors = checkpoint.tensors();
  fail(fmt::format("none of the {} tensors belongs to an architecture known here{}", tensors.size(),
                   tensors.empty()
                       ? ""
                       : fmt::format(" (the first is '{}')", printable(tensors.front().name))),
       checkpoint.path(), hint);
}

}  // namespace fungi
