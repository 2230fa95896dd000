// SPDX-License-Identifier: Apache-2.0
// What a dialect read from a file is held against the whole file. Transformers come in hundreds of
// variants with nearly the same names; what is not understood must be refused, never left out.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr const char* kVariant =
    "this variant is not among those that `models` lists; the embedding would be wrong";

size_t after_separator(std::string_view name) {  // the last one; 0: none
  const size_t at = name.find_last_of("./");
  return at == std::string_view::npos ? 0 : at + 1;
}

// "blocks.3." of "blocks.3.attn.qkv.bias"; empty for any other canonical name.
std::string canonical_block(const std::string& name) {
  if (!name.starts_with("blocks.")) return "";
  return name.substr(0, name.find('.', 7) + 1);
}

// What the tensors of one block have in common in the file: "visual.transformer.resblocks.3."
std::map<std::string, std::string> block_folders(const Recipes& recipes) {
  std::map<std::string, std::string> folders;
  for (const auto& [name, recipe] : recipes) {
    const std::string block = canonical_block(name);
    if (block.empty()) continue;
    for (const std::string& part : recipe.parts) {
      if (part.empty()) continue;
      const auto [at, fresh] = folders.try_emplace(block, part);
      std::string& common = at->second;
      if (fresh) continue;
      const auto end = std::mismatch(common.begin(), common.end(), part.begin(), part.end()).first;
      common.erase(end, common.end());
    }
  }
  for (auto& [block, common] : folders) common.resize(after_separator(common));
  return folders;
}

// Constants that some files carry: they say nothing that the encoder does not know.
bool is_constant(std::string_view name) {
  for (const char* end : {"relative_position_index", "num_batches_tracked", "position_ids",
                          "inv_freq", "attn_mask", "freqs_cis"})
    if (name.ends_with(end)) return true;
  return false;
}

// The angles of rotary positions, which some files carry; they are computed here. (rope.freqs,
// which timm's mixed kind learns, is none of these.)
bool is_known_angle(std::string_view name) {
  for (const char* known : {"rope.bands", "rope.pos_embed", "rope.freqs_cos", "rope.freqs_sin"})
    if (name == known) return true;
  return false;
}

void check_parts(const NameReader& names, const Recipes& recipes) {
  for (const auto& [canonical, recipe] : recipes)
    for (const std::string& part : recipe.parts)
      if (!part.empty() && !names.checkpoint().find(part)) refuse_missing(names, part);
}

// What one block has, all have.
void check_blocks_alike(const NameReader& names, const Reading& reading) {
  const auto folders = block_folders(reading.recipes);
  std::set<std::string> parts;
  std::map<std::string, std::string> owner;  // of each name inside a block, one block that has it
  for (const auto& [name, recipe] : reading.recipes)
    if (const std::string block = canonical_block(name); !block.empty())
      for (const std::string& part : recipe.parts) {
        if (part.empty()) continue;  // zeros: then in every block
        parts.insert(part);
        owner[part.substr(folders.at(block).size())] = part;
      }
  for (const auto& [block, folder] : folders)
    for (const auto& [rest, other] : owner)
      if (!parts.count(folder + rest))
        fail(fmt::format("the tensor is missing, while there is {}", printable(other)),
             fmt::format("{}: {}", names.checkpoint().path(), printable(folder + rest)),
             "the file is incomplete");
}

// A tensor in the folder of a block that no recipe uses: a norm, bias or scale we would leave
// out.
void check_nothing_left(const NameReader& names, const Reading& reading) {
  std::set<std::string> used;
  for (const auto& [name, recipe] : reading.recipes)
    used.insert(recipe.parts.begin(), recipe.parts.end());
  const auto folders = block_folders(reading.recipes);
  // Parts of other kinds of pooling, positions or fine-tuning, which lie beside the blocks.
  static const std::set<std::string_view> strange{"attn_pool", "rope",   "blocks_token_only",
                                                  "lora",      "prompt", "adapter"};
  for (const TensorInfo& t : names.checkpoint().tensors()) {
    if (used.count(t.name) || is_constant(t.name)) continue;
    for (const auto& [block, folder] : folders)
      if (!folder.empty() && t.name.starts_with(folder))
        fail("the tensor belongs to a block, but nothing here uses it",
             fmt::format("{}: {}", names.checkpoint().path(), printable(t.name)), kVariant);
    if (!t.name.starts_with(reading.prefix)) continue;
    const std::string_view rest = std::string_view(t.name).substr(reading.prefix.size()),
                           first = rest.substr(0, rest.find('.'));
    if (reading.architecture.rotary && is_known_angle(rest)) continue;
    if (strange.count(first) || first == "patch_embed")
      fail("the tensor belongs to the network, but nothing here uses it",
           fmt::format("{}: {}", names.checkpoint().path(), printable(t.name)), kVariant);
  }
}

void check_config(const NameReader& names, const Architecture& a) {
  struct Fact {
    const char* pointer;
    size_t found;
  };
  for (const Fact& fact : {Fact{"/num_hidden_layers", a.depth}, Fact{"/model_args/depth", a.depth},
                           Fact{"/hidden_size", a.width}, Fact{"/model_args/embed_dim", a.width},
                           Fact{"/d_model", a.width}, Fact{"/num_layers", a.depth}})
    if (const auto expected = names.config_size(fact.pointer); expected && *expected != fact.found)
      fail(fmt::format("config.json says {} = {}, the tensors say {}",
                       (names.config_root() + fact.pointer).substr(1), *expected, fact.found),
           names.checkpoint().path(),
           "the file is incomplete, or config.json belongs to another model: move it away");
}

}  // namespace

void check_reading(const NameReader& names, const Reading& reading) {
  check_parts(names, reading.recipes);
  check_blocks_alike(names, reading);
  check_nothing_left(names, reading);
  check_config(names, reading.architecture);
  check_recipes(names.checkpoint(), reading);
}

}  // namespace fungi
