// SPDX-License-Identifier: Apache-2.0
// What timm's config.json may say in model_args: the words with which the model was built in place
// of its architecture's own. What is not known to be read, told by tensors, or without effect on an
// evaluation is refused by its name.
#include <fmt/format.h>

#include <map>
#include <set>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Read elsewhere, told by the tensors (or what they lack), or of training alone.
const std::set<std::string> kUnderstood{"act_layer",
                                        "attn_drop_rate",
                                        "attn_pool_mlp_ratio",
                                        "attn_pool_num_heads",
                                        "attn_type",
                                        "class_token",
                                        "depth",
                                        "device",
                                        "drop_path_rate",
                                        "drop_rate",
                                        "dtype",
                                        "dynamic_img_pad",
                                        "dynamic_img_size",
                                        "embed_dim",
                                        "fc_norm",
                                        "final_norm",
                                        "fix_init",
                                        "global_pool",
                                        "head_init_scale",
                                        "img_size",
                                        "in_chans",
                                        "init_values",
                                        "mlp_ratio",
                                        "no_embed_class",
                                        "num_classes",
                                        "num_heads",
                                        "num_reg_tokens",
                                        "patch_drop_rate",
                                        "patch_size",
                                        "pool_include_prefix",
                                        "pos_drop_rate",
                                        "pos_embed",
                                        "pre_norm",
                                        "proj_bias",
                                        "proj_drop_rate",
                                        "qk_norm",
                                        "qkv_bias",
                                        "qkv_fused",
                                        "reg_tokens",
                                        "scale_attn_inner",
                                        "scale_attn_norm",
                                        "scale_mlp",
                                        "scale_mlp_norm",
                                        "strict_img_size",
                                        "swiglu_align_to",
                                        "swiglu_mlp",
                                        "use_abs_pos_emb",
                                        "use_fc_norm",
                                        "weight_init"};

// What is run here whatever is said, as it stands in JSON.
const std::map<std::string, std::set<std::string>> kFixed{
    {"attn_only_layer_scale", {"false"}},
    {"num_kv_heads", {"null"}},
    {"rope_grid_indexing", {"\"ij\""}},
    {"rope_grid_offset", {"0.0", "0"}},
    {"rope_mrope_section", {"null"}},
    {"rope_rotate_half", {"false"}},
    {"rope_temperature", {"10000.0", "10000"}},
    {"rope_type", {"\"cat\"", "\"\""}},
    {"use_post_norm", {"false"}},
    {"use_post_transformer_norm", {"null"}},
    {"use_pre_transformer_norm", {"false"}}};

}  // namespace

void check_timm_args(const NameReader& names, const Architecture& a) {
  for (const std::string& key : names.config_keys("/model_args")) {
    const std::string said = names.config_dump(("/model_args/" + key).c_str());
    if (kUnderstood.count(key)) continue;
    const auto fixed = kFixed.find(key);
    std::set<std::string> run = fixed == kFixed.end() ? std::set<std::string>{} : fixed->second;
    if (key == "use_rot_pos_emb") run = {a.rotary ? "true" : "false"};
    if (key == "ref_feat_shape")  // of a model without rotary positions it is the size of nothing
      run = {fmt::format("[{},{}]", a.rotary_grid, a.rotary_grid),
             fmt::format("{}", a.rotary_grid)};
    if (key == "mlp_layer" && a.gated_mlp)  // whose activation is stated
      run = {"\"SwiGLUPacked\"", "\"timm.layers.SwiGLUPacked\""};
    if (run.empty()) run = {"null"};  // as if it were not there
    if (run.count(said)) continue;
    fail(fmt::format("config.json says model_args/{} = {}, which is not known here", printable(key),
                     said),
         names.checkpoint().path(),
         "this variant is not among those that `models` lists; the embedding would be wrong");
  }
}

}  // namespace fungi
