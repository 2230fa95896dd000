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
                                        "rope_jitter_coords",
                                        "rope_rescale_coords",
                                        "rope_shift_coords",
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

// As numbers and flags stand in JSON.
std::set<std::string> number(double value) {
  return {fmt::format("{:g}", value), fmt::format("{:.1f}", value)};
}
std::set<std::string> flag(bool value) { return {value ? "true" : "false"}; }

// What is run here whatever is said; of rotary positions only what the record has.
std::map<std::string, std::set<std::string>> fixed_args(const Architecture& a) {
  const size_t grid = a.rotary_grid;
  std::map<std::string, std::set<std::string>> fixed{
      {"attn_only_layer_scale", flag(false)},
      {"num_kv_heads", {"null"}},
      {"rope_grid_indexing", {a.rotary_columns_first ? "\"xy\"" : "\"ij\""}},
      {"rope_grid_offset", number(a.rotary_offset)},
      {"rope_mrope_section", {"null"}},
      {"rope_rotate_half", flag(a.rotary_centred)},
      {"rope_temperature", number(a.rotary_theta)},
      {"rope_type", {a.rotary_centred ? "\"dinov3\"" : "\"cat\"", "\"\""}},
      {"use_post_norm", flag(false)},
      {"use_post_transformer_norm", {"null"}},
      {"use_pre_transformer_norm", flag(a.norm_pre)},
      {"use_rot_pos_emb", flag(a.rotary)},
      // of a model without rotary positions it is the size of nothing
      {"ref_feat_shape", {fmt::format("[{},{}]", grid, grid), fmt::format("{}", grid)}}};
  if (grid == 0) fixed["ref_feat_shape"] = {"null"};
  if (a.gated_mlp)  // whose activation is stated
    fixed["mlp_layer"] = {"\"SwiGLUPacked\"", "\"timm.layers.SwiGLUPacked\""};
  return fixed;
}

}  // namespace

void check_timm_args(const NameReader& names, const Architecture& a) {
  const auto all = fixed_args(a);
  for (const std::string& key : names.config_keys("/model_args")) {
    const std::string said = names.config_dump(("/model_args/" + key).c_str());
    if (kUnderstood.count(key)) continue;
    const auto fixed = all.find(key);
    // Of others nothing may be said: as if they were not there.
    const std::set<std::string> run =
        fixed == all.end() ? std::set<std::string>{"null"} : fixed->second;
    if (run.count(said)) continue;
    fail(fmt::format("config.json says model_args/{} = {}, which is not known here", printable(key),
                     said),
         names.checkpoint().path(),
         "this variant is not among those that `models` lists; the embedding would be wrong");
  }
}

}  // namespace fungi
