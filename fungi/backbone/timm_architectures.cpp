// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/timm_architectures.h"

#include <fmt/format.h>

#include <charconv>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

bool lists(std::string_view names, const std::string& name) {
  return names.find(" " + name + " ") != std::string_view::npos;
}

const TimmArchitecture* find(const std::string& name) {
  for (const TimmArchitecture& a : timm_architectures())
    if (lists(a.names, name)) return &a;
  return nullptr;
}

// "vit_base_patch16_224" of "vit_base_patch16_224.augreg_in21k" and
// "vit_base_patch16_224-80ecf9dd.pth".
std::string before_tag(const std::string& name) { return name.substr(0, name.find_first_of(".-")); }

[[noreturn]] void refuse(const NameReader& names, const std::string& name, const char* hint) {
  fail(fmt::format("{} is the name of an architecture that is run in another way than a plain ViT",
                   printable(name)),
       names.checkpoint().path(), hint);
}

// The size of pictures, with which most names end: a model whose patches do not fill it leaves out
// their edge. Where config.json tells the size, it is checked there.
void check_size(const NameReader& names, const Architecture& a, const std::string& name) {
  size_t size = 0;
  const std::string last = name.substr(name.find_last_of('_') + 1);
  std::from_chars(last.data(), last.data() + last.size(), size);
  if (size % a.patch_h == 0 || names.stated("size") || names.config_has("/model_args/img_size") ||
      names.config_has("/pretrained_cfg/input_size"))
    return;
  fail(fmt::format("{} leaves out the edge of its pictures of {} pixels, which is not known here",
                   name, size),
       names.checkpoint().path(),
       fmt::format("to run it at another size: `stated_facts[size]={}`",
                   size / a.patch_h * a.patch_h));
}

}  // namespace

bool is_early_small(const Architecture& a) {
  return a.width == 768 && a.depth == 8 && a.mlp_hidden == 2304 && !a.qkv_bias;
}

const TimmArchitecture* find_timm_architecture(const NameReader& names, const Architecture& a) {
  if (is_early_small(a)) return nullptr;
  const auto told = names.architecture();
  if (!told) {
    const std::string file =
        before_tag(std::filesystem::path(names.checkpoint().path()).filename().string());
    if (lists(other_timm_architectures(), file) && !names.stated("family"))
      refuse(names, file, "if that is not what the file holds, rename it");
    const TimmArchitecture* known = find(file);
    if (!known || known->width != a.width) return nullptr;
    check_size(names, a, file);
    return known;
  }
  const std::string name = before_tag(*told);
  const bool stated = names.stated("architecture").has_value();
  if (lists(other_timm_architectures(), name))
    refuse(names, name, "`models` lists what can be run");
  const TimmArchitecture* known = find(name);
  if (stated && !known)
    fail(fmt::format("'{}' is not a ViT of timm that is known here", printable(name)),
         "`stated_facts[architecture]`", "e.g. vit_base_patch16_224, as timm.list_models() has it");
  const size_t expected =
      !known || stated ? 0 : names.config_size("/model_args/embed_dim").value_or(known->width);
  if (known && (stated ? known->width : expected) != a.width)
    fail(
        fmt::format("{} is {} wide, the tensors say {}", name, stated ? known->width : expected,
                    a.width),
        names.checkpoint().path(),
        "correct the architecture in config.json or in `stated_facts[architecture]`: it is another "
        "model's");
  if (known) check_size(names, a, name);
  return known;
}

}  // namespace fungi
