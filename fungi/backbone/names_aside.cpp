// SPDX-License-Identifier: Apache-2.0
// Which tensors of a file may be left aside. What is not listed here might change the embedding:
// prompts, necks, other kinds of positions. It is refused by name, and only the user can say that
// it does not matter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "fungi/backbone/names.h"
#include "fungi/base/text.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using Names = std::set<std::string, std::less<>>;

// What comes after the embedding, or is for training alone: beside the network or inside its
// folder.
const Names& after_the_network() {
  static const Names names{
      // classifiers, and what lies between them and the class token
      "head", "heads", "head_dist", "classifier", "cls_classifier", "distillation_classifier", "fc",
      "linear", "mlp_head", "pre_logits", "pooler", "score", "qa_outputs", "splinter_qass",
      "pre_classifier", "sop_classifier",
      // words predicted
      "cls", "lm_head", "predictions", "discriminator_predictions", "generator_predictions",
      "generator_lm_head", "vocab_layer_norm", "vocab_transform", "vocab_projector",
      // heads and tables of self-supervised training
      "dino_head", "ibot_head", "projection_head", "projector", "predictor", "prototypes",
      "last_layer", "queue", "queue_ptr", "queue_index", "mask_token", "masked_embed", "dino_loss",
      "ibot_loss", "ibot_patch_loss", "loss", "criterion", "center", "cpredlayer", "gpredlayer",
      "p_input_fdim", "p_input_tdim", "mask_embed", "local_cls_norm",
      // MAE's and other decoders
      "decoder", "proj_out", "decoder_blocks", "decoder_embed", "decoder_norm", "decoder_pos_embed",
      "decoder_pred", "enc_to_dec_proj",
      // T5 writes its table of words several times
      "shared", "encoder.embed_tokens",
      // the state of training
      "amp", "args", "callbacks", "cfg", "config", "epoch", "fp16_scaler", "grad_scaler", "hparams",
      "hyper_parameters", "loops", "lr_scheduler", "lr_schedulers", "message_hub",
      "native_amp_scaling_state", "opt", "optimizer", "optimizer_state", "optimizer_state_dict",
      "optimizer_states", "optimizers", "optim", "param_schedulers", "random_states", "rng_state",
      "cuda_rng_state", "torch_rng_state", "scaler", "scheduler"};
  return names;
}

// Networks beside this one, and what belongs to them: only outside its folder, if it has one.
const Names& beside_the_network() {
  static const Names names{
      // the same network once more: half trained, averaged, or of the other side
      "base_encoder", "ema", "ema_model", "encoder_k", "encoder_q", "model", "model_ema",
      "momentum_encoder", "momentum_teacher", "state_dict", "state_dict_ema", "student",
      "target_encoder", "teacher",
      // the text beside an image tower
      "ln_final", "logit_bias", "logit_scale", "positional_embedding", "text", "text_decoder",
      "text_encoder", "text_model", "text_projection", "textual", "token_embedding", "transformer",
      "context_length", "input_resolution", "vocab_size"};
  return names;
}

// Constants that some files carry: they say nothing that the encoder does not know.
bool is_constant(std::string_view name) {
  for (const char* end : {"relative_position_index", "num_batches_tracked", "position_ids",
                          "token_type_ids", "inv_freq", "attn_mask", "freqs_cis"})
    if (name.ends_with(end)) return true;
  return false;
}

// The angles of rotary positions, which some files carry; they are computed here. (rope.freqs,
// which timm's mixed kind learns, is none of these.)
bool is_known_angle(std::string_view name) {
  for (const char* known : {"rope.bands", "rope.pos_embed", "rope.freqs_cos", "rope.freqs_sin",
                            "rope_embed.periods"})
    if (name == known) return true;
  return false;
}

// Whether the folder holds a part of the network, or is one.
bool holds_a_part(const std::set<std::string>& used, const std::string& folder) {
  for (const char* end : {"", ".", "/"})
    if (const auto first = used.lower_bound(folder + end); first != used.end())
      if (*end ? first->starts_with(folder + end) : *first == folder) return true;
  return false;
}

// Whether the rest of the name, or a folder that it lies in, is listed and no part of the network,
// as the head of a tower is.
bool listed(const Names& names, const std::set<std::string>& used, const std::string& name,
            std::string_view rest) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = rest.find_first_of("./", end + 1);
    const std::string_view after = end == std::string_view::npos ? "" : rest.substr(end);
    if (names.contains(rest.substr(0, end)) &&
        !holds_a_part(used, name.substr(0, name.size() - after.size())))
      return true;
  }
  return false;
}

// Without the folders that it shares with the network.
std::string_view below_common_folder(std::string_view name, std::string_view prefix) {
  const auto ends = std::mismatch(name.begin(), name.end(), prefix.begin(), prefix.end());
  const size_t same = size_t(ends.first - name.begin());
  const size_t folder = name.substr(0, same).find_last_of("./");
  return folder == std::string_view::npos ? name : name.substr(folder + 1);
}

bool may_be_left_aside(const NameReader& names, const Reading& reading,
                       const std::set<std::string>& used, const std::string& name) {
  const std::string folder = reading.prefix + names.tower();
  const bool inside = name.starts_with(folder);
  const std::string_view rest =
      inside ? std::string_view(name).substr(folder.size()) : below_common_folder(name, folder);
  if (inside && reading.architecture.rotary && is_known_angle(rest)) return true;
  // What would pool, where the user has it done in another way.
  if (inside && rest.starts_with("attn_pool.") && names.stated("pooling") &&
      reading.architecture.pooling != Pooling::attention)
    return true;
  // KWT's filters: what its front end computes.
  if (inside && reading.architecture.family == "kwt" && rest.starts_with("frontend.")) return true;
  if (listed(after_the_network(), used, name, rest)) return true;
  if (folder.empty() ? holds_a_part(used, name.substr(0, name.find_first_of("./"))) : inside)
    return false;
  return listed(beside_the_network(), used, name, rest) || names.of_another_network(name);
}

// Names an entry of the user's list: the whole name, or its start where it ends in a dot or a star;
// with or without the network's prefix.
bool matches(std::string_view entry, std::string_view name) {
  if (entry.ends_with('*')) return name.starts_with(entry.substr(0, entry.size() - 1));
  return entry.ends_with('.') ? name.starts_with(entry) : name == entry;
}

// What follows the encoder in models of these types, by the starts of names: depth and words are
// made of what it gives.
const std::map<std::string, std::vector<std::string>>& decoders() {
  static const std::map<std::string, std::vector<std::string>> starts{
      {"depth_anything", {"neck."}},
      {"dpt", {"neck."}},
      {"git",
       {"git.embeddings.", "git.encoder.",
        "git.img_temperal_embedding.",  // spelled so in the files
        "git.visual_projection.", "output."}},
      {"whisper", {"model.decoder.", "decoder.", "proj_out."}}};
  return starts;
}

// Names for the user's list that mean these tensors: those of a folder in which nothing is used by
// its start.
std::vector<std::string> entries_for(const std::set<std::string>& used,
                                     const std::vector<std::string>& left) {
  std::vector<std::string> entries;
  for (const std::string& name : left) {
    if (!entries.empty() && matches(entries.back(), name)) continue;
    std::string entry = name;
    for (size_t end = 0; entry == name && (end = name.find('.', end + 1)) != std::string::npos;) {
      const std::string folder = name.substr(0, end);
      const auto inside = std::count_if(left.begin(), left.end(), [&](const std::string& other) {
        return other.starts_with(folder + '.');
      });
      if (inside > 1 && !holds_a_part(used, folder)) entry = folder + '.';
    }
    entries.push_back(entry);
  }
  return entries;
}

// Whether the embedding depends on it for certain: on what lies in a layer that is run, on learned
// angles, and on what pools.
bool surely_matters(const NameReader& names, const std::set<std::string>& used,
                    const std::string& name) {
  const std::string_view rest = below_common_folder(name, names.full(names.tower()));
  const std::string_view part = rest.substr(0, rest.find_first_of("./"));
  return part == "rope" || part == "attn_pool" ||
         holds_a_part(used, name.substr(0, name.size() - rest.size() + part.size()));
}

// What a user who knows that the tensors do not matter states; nothing where they do, or where it
// would be a long list.
std::string way_out(const NameReader& names, const std::set<std::string>& used,
                    const std::vector<std::string>& left) {
  constexpr size_t kMost = 6;
  if (std::any_of(left.begin(), left.end(),
                  [&](const std::string& name) { return surely_matters(names, used, name); }))
    return "";
  std::vector<std::string> entries;
  if (const auto already = names.stated("ignore")) entries.push_back(*already);
  for (std::string& entry : entries_for(used, left)) {
    if (entry.find(',') != std::string::npos || printable(entry) != entry) return "";
    entries.push_back(std::move(entry));
  }
  if (entries.size() > kMost) return "";
  return fmt::format("; if it does not depend on {}, state `stated_facts[ignore]={}`",
                     left.size() == 1 ? "the tensor" : "them", fmt::join(entries, ","));
}

}  // namespace

bool NameReader::ignored(const std::string& name) const {
  return std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const std::string& entry) { return is_meant(entry, name); });
}

bool NameReader::is_meant(const std::string& entry, const std::string& name) const {
  return matches(entry, name) || (name.starts_with(prefix_) &&
                                  matches(entry, std::string_view(name).substr(prefix_.size())));
}

void NameReader::check_ignored_exist() const {
  const auto& all = checkpoint_.tensors();
  for (const std::string& entry : ignored_)
    if (std::none_of(all.begin(), all.end(),
                     [&](const TensorInfo& t) { return is_meant(entry, t.name); }))
      fail(fmt::format("the file holds no tensor '{}'", printable(entry)), "`stated_facts[ignore]`",
           "a name alone is a whole one; with a dot or a star at its end it is the start of names");
}

std::vector<std::string> decoder_of(const NameReader& names, const Architecture& a) {
  const auto known = decoders().find(names.config_whole_type().value_or(a.family));
  if (known == decoders().end()) return {};
  std::vector<std::string> there;
  const auto& all = names.checkpoint().tensors();
  for (const std::string& start : known->second)
    if (std::any_of(all.begin(), all.end(),
                    [&](const TensorInfo& t) { return t.name.starts_with(start); }))
      there.push_back(start);
  return there;
}

void check_nothing_left(const NameReader& names, const Reading& reading, bool fits) {
  names.check_ignored_exist();
  std::set<std::string> used;
  for (const auto& [name, recipe] : reading.recipes)
    used.insert(recipe.parts.begin(), recipe.parts.end()), used.insert(recipe.times);
  const auto folders = block_folders(reading.recipes);
  const auto in_block = [&](const std::string& name) {
    return std::any_of(folders.begin(), folders.end(), [&](const auto& block) {
      return !block.second.empty() && name.starts_with(block.second);
    });
  };
  const std::vector<std::string> decoder = decoder_of(names, reading.architecture);
  const auto decodes = [&](const std::string& name) {
    return std::any_of(decoder.begin(), decoder.end(),
                       [&](const std::string& start) { return name.starts_with(start); });
  };
  std::vector<std::string> left;
  for (const TensorInfo& t : names.checkpoint().tensors()) {
    if (names.ignored(t.name)) {
      if (!used.contains(t.name)) continue;
      fail("the network is computed with this tensor, so it cannot be left aside",
           tensor_place(names.checkpoint().path(), t.name), "correct `stated_facts[ignore]`");
    }
    if (!used.contains(t.name) && t.count() > 0 && !is_constant(t.name) && !decodes(t.name) &&
        (in_block(t.name) || !may_be_left_aside(names, reading, used, t.name)))
      left.push_back(t.name);
  }
  if (left.empty()) return;
  const std::string more = left.size() == 1 ? "" : fmt::format(", nor {} others", left.size() - 1);
  fail(in_block(left[0])
           ? fmt::format("the tensor belongs to a block, but nothing here uses it{}", more)
           : fmt::format("nothing here uses the tensor{}, and it is not known to be without effect",
                         more),
       tensor_place(names.checkpoint().path(), left[0]),
       "this variant is not among those that `models` lists, and the embedding may be wrong" +
           (fits ? way_out(names, used, left) : ""));
}

}  // namespace fungi
