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

size_t after_separator(std::string_view name) {  // the last one; 0: none
  const size_t at = name.find_last_of("./");
  return at == std::string_view::npos ? 0 : at + 1;
}

// "blocks.3." of "blocks.3.attn.qkv.bias"; empty for any other canonical name.
std::string canonical_block(const std::string& name) {
  if (!name.starts_with("blocks.")) return "";
  return name.substr(0, name.find('.', 7) + 1);
}

void check_parts(const NameReader& names, const Recipes& recipes) {
  for (const auto& [canonical, recipe] : recipes)
    for (const std::string& part : recipe.parts)
      if (!part.empty() && !names.checkpoint().find(part)) refuse_missing(names, part);
}

// What one block has, all have, but for a norm that the first one never has.
void check_blocks_alike(const NameReader& names, const Reading& reading) {
  const auto folders = block_folders(reading.recipes);
  std::set<std::string> parts;
  std::map<std::string, std::string> owner;  // of each name inside a block, one block that has it
  for (const auto& [name, recipe] : reading.recipes)
    if (const std::string block = canonical_block(name); !block.empty())
      for (const std::string& part : recipe.parts) {
        if (part.empty()) continue;  // zeros: then in every block
        if (!reading.architecture.first_norm && name.starts_with(block + "norm1.")) continue;
        parts.insert(part);
        owner[part.substr(folders.at(block).size())] = part;
      }
  for (const auto& [name, recipe] : reading.recipes)
    if (const std::string block = canonical_block(name); !recipe.times.empty() && !block.empty()) {
      parts.insert(recipe.times);
      owner[recipe.times.substr(folders.at(block).size())] = recipe.times;
    }
  for (const auto& [block, folder] : folders)
    for (const auto& [rest, other] : owner)
      if (!parts.count(folder + rest))
        fail(fmt::format("the tensor is missing, while there is {}", printable(other)),
             fmt::format("{}: {}", names.checkpoint().path(), printable(folder + rest)),
             "the file is incomplete");
}

void check_config(const NameReader& names, const Architecture& a) {
  struct Fact {
    const char* pointer;
    size_t found;
  };
  for (const Fact& fact :
       {Fact{"/num_hidden_layers", a.depth}, Fact{"/model_args/depth", a.depth},
        Fact{"/hidden_size", a.width}, Fact{"/model_args/embed_dim", a.width},
        Fact{"/d_model", a.width}, Fact{"/num_layers", a.depth}, Fact{"/dim", a.width},
        Fact{"/n_layers", a.depth}, Fact{"/embedding_size", a.words_width()}})
    if (const auto expected = names.config_size(fact.pointer); expected && *expected != fact.found)
      fail(fmt::format("config.json says {} = {}, the tensors say {}",
                       (names.config_root() + fact.pointer).substr(1), *expected, fact.found),
           names.checkpoint().path(),
           "the file is incomplete, or config.json belongs to another model: move it away");
}

}  // namespace

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

void check_reading(const NameReader& names, const Reading& reading) {
  check_parts(names, reading.recipes);
  check_blocks_alike(names, reading);
  std::optional<Error> other;
  try {
    check_config(names, reading.architecture);
    check_recipes(names.checkpoint(), reading);
  } catch (const Error& e) {
    other = e;
  }
  check_nothing_left(names, reading, !other);
  if (other) throw *other;
}

}  // namespace fungi
