// SPDX-License-Identifier: Apache-2.0
// open_clip_config.json, which open_clip leaves beside its weights: how the tower is pooled, its
// heads, activation and epsilon, and the evaluation transform. None of them stands in a tensor.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using json = nlohmann::json;

constexpr const char* kFile = "open_clip_config.json";

class OpenClipConfig {
 public:
  explicit OpenClipConfig(const NameReader& names)
      : place_(names.checkpoint().path()), all_(json_beside(names.checkpoint(), kFile)) {
    if (there() && !at({"model_cfg", "vision_cfg"}).is_object())
      refuse("expected an object with model_cfg/vision_cfg in it");
  }
  bool there() const { return !all_.is_null(); }
  json at(std::initializer_list<const char*> path) const {  // null: not there
    const json* value = &all_;
    for (const char* key : path) {
      if (!value->is_object() || !value->contains(key)) return json();
      value = &value->at(key);
    }
    return *value;
  }
  json vision(const char* key) const { return at({"model_cfg", "vision_cfg", key}); }
  json transform(const char* key) const { return at({"preprocess_cfg", key}); }
  [[noreturn]] void refuse(const std::string& message) const {
    fail(fmt::format("{}: {}", kFile, message), place_,
         "correct it, or move it away and state the facts with `stated_facts`");
  }
  [[noreturn]] void unknown(const std::string& key, const json& value) const {
    refuse(fmt::format("{} is {}, which is not known here", printable(key), text(value)));
  }
  static std::string text(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
  }

 private:
  std::string place_;
  json all_;
};

// Read below, told by the tensors, or of training alone.
const std::set<std::string> kUnderstood{"act_kwargs",
                                        "attn_pooler_heads",
                                        "attn_pooler_queries",
                                        "block_type",
                                        "final_ln_after_pool",
                                        "head_width",
                                        "image_size",
                                        "layers",
                                        "ls_init_value",
                                        "mlp_ratio",
                                        "n_queries",
                                        "norm_kwargs",
                                        "output_tokens",
                                        "patch_dropout",
                                        "patch_size",
                                        "pool_type",
                                        "pos_embed_type",
                                        "qk_norm",
                                        "scale_attn",
                                        "scale_attn_inner",
                                        "scale_fc",
                                        "scale_heads",
                                        "scaled_cosine_attn",
                                        "timm_drop",
                                        "timm_drop_path",
                                        "timm_model_pretrained",
                                        "timm_pool",
                                        "timm_proj",
                                        "timm_proj_bias",
                                        "width"};

void set_pooling(const OpenClipConfig& config, Architecture& a) {
  const json pool = config.vision("pool_type"), after = config.vision("final_ln_after_pool");
  if (pool == "avg")
    a.pooling = Pooling::mean_patches;
  else if (!pool.is_null() && pool != "tok")
    config.unknown("pool_type", pool);
  a.norm_after_pooling = after == true;
}

void set_activation(const OpenClipConfig& config, Architecture& a) {
  const json quick = config.at({"model_cfg", "quick_gelu"}), how = config.vision("act_kwargs");
  a.activation = quick == true ? kernel::Activation::quick_gelu : kernel::Activation::gelu;
  if (how.is_null() || how == json::object() || how == json{{"approximate", "none"}}) return;
  if (quick == true || how != json{{"approximate", "tanh"}}) config.unknown("act_kwargs", how);
  a.activation = kernel::Activation::gelu_tanh;
}

void set_epsilon(const OpenClipConfig& config, Architecture& a) {
  const json norm = config.vision("norm_kwargs");
  if (norm.is_null() || norm == json::object()) return;
  if (!norm.is_object() || norm.size() != 1 || !norm.contains("eps") || !norm["eps"].is_number())
    config.unknown("norm_kwargs", norm);
  a.norm_epsilon = norm["eps"].get<float>();
}

bool is_trunk(const NameReader& names) { return names.full("").ends_with("trunk."); }

}  // namespace

bool read_open_clip_config(const NameReader& names, Architecture& a) {
  const OpenClipConfig config(names);
  if (!config.there()) return false;
  const json vision = config.at({"model_cfg", "vision_cfg"});
  for (const auto& [key, value] : vision.items())
    if (!kUnderstood.count(key) && !value.is_null() && value != false) config.unknown(key, value);
  for (const auto& [key, found] : {std::pair("layers", a.depth), std::pair("width", a.width)})
    if (const json expected = config.vision(key); !expected.is_null() && expected != found)
      config.refuse(
          fmt::format("{} is {}, the tensors say {}", key, OpenClipConfig::text(expected), found));
  const json width = config.vision("head_width");
  const size_t head = width.is_null() ? 64 : width.is_number_unsigned() ? width.get<size_t>() : 0;
  if (head == 0 || a.width % head)
    config.refuse(fmt::format("expected a head_width that divides {}, found {}", a.width,
                              OpenClipConfig::text(width)));
  if (!names.stated("heads")) a.heads = a.width / head;
  set_pooling(config, a);
  set_activation(config, a);
  set_epsilon(config, a);
  return true;
}

bool read_open_clip_transform(const NameReader& names, Architecture& a) {
  if (a.dialect != "openai" && !is_trunk(names)) return false;
  const OpenClipConfig config(names);
  if (!config.at({"preprocess_cfg"}).is_object()) return false;
  PreprocessFacts& p = a.preprocess;
  p.transform.mean = kClipMean, p.transform.std = kClipDeviation;  // what is left out is OpenAI's
  for (const auto& [key, colours] :
       {std::pair("mean", &p.transform.mean), std::pair("std", &p.transform.std)}) {
    const json list = config.transform(key);
    if (list.is_null()) continue;
    if (!list.is_array() || list.size() != 3) config.unknown(key, list);
    for (size_t i = 0; i < 3; ++i) {
      if (!list[i].is_number()) config.unknown(key, list);
      (*colours)[i] = list[i].get<float>();
    }
  }
  const json filter = config.transform("interpolation"), mode = config.transform("resize_mode");
  if (!filter.is_null() && filter != "bicubic" && filter != "bilinear")
    config.unknown("interpolation", filter);
  if (!mode.is_null() && mode != "shortest" && mode != "squash")
    config.unknown("resize_mode", mode);
  p.transform.set_bilinear(filter == "bilinear"), p.transform.set_squash(mode == "squash");
  p.transform.resize_size = std::min(a.input_h, a.input_w);
  p.source = kFile;
  p.assumed = false;
  return true;
}

void check_trunk(const NameReader& names, const Architecture& a) {
  if (!is_trunk(names)) return;
  const std::string own = names.full("head."),
                    after = own.substr(0, own.size() - std::string_view("trunk.head.").size()) +
                            "head.";
  for (const TensorInfo& t : names.checkpoint().tensors())
    if (t.name.starts_with(after) || (!a.head && t.name.starts_with(own)))
      fail("a head after open_clip's trunk, which nothing here runs",
           tensor_place(names.checkpoint().path(), t.name),
           "the embedding would not be that of the model; for the trunk's, save its state dict "
           "alone");
  const OpenClipConfig config(names);
  if (!config.there() || names.stated("pooling")) return;
  const json pool = config.vision("timm_pool");
  const json run = a.pooling == Pooling::mean_patches ? "avg" : "token";
  if ((pool.is_null() ? json("avg") : pool) != run)
    config.refuse(fmt::format("timm_pool is {}, but what tells of the trunk says {}",
                              OpenClipConfig::text(pool), OpenClipConfig::text(run)));
}

}  // namespace fungi
