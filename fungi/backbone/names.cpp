// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/dinov3_names.h"
#include "fungi/backbone/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {

NameReader::NameReader(const Checkpoint& checkpoint, const StatedFacts& stated_facts)
    : checkpoint_(checkpoint), overrides_(stated_facts) {
  const auto list = stated("ignore");
  for (size_t first = 0, end = 0; list && end != std::string::npos; first = end + 1) {
    end = list->find(',', first);
    ignored_.push_back(list->substr(first, end - first));
    if (ignored_.back().find_first_not_of(".*") == std::string::npos)
      fail(fmt::format("'{}' is not the name of a tensor", ignored_.back()),
           "`stated_facts[ignore]`", "name tensors; `inspect` with `tensors` lists them");
  }
}

bool NameReader::of_another_network(const std::string& name) const {
  return std::any_of(others_.begin(), others_.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

size_t NameReader::dimension(std::string_view name, size_t axis) const {
  const TensorInfo* t = checkpoint_.find(full(name));
  if (!t) refuse_missing(*this, full(name));
  if (axis >= t->shape.size() || t->shape[axis] == 0)
    fail(fmt::format("the shape is {}, which has no axis {}", t->shape_text(), axis),
         fmt::format("{}: {}", checkpoint_.path(), printable(full(name))),
         "the file is of another architecture; `models` lists those known");
  return t->shape[axis];
}

size_t NameReader::count(std::string_view name) const {
  const TensorInfo* t = checkpoint_.find(full(name));
  if (!t) refuse_missing(*this, full(name));
  return t->count();
}

size_t NameReader::count_blocks(std::string_view before, std::string_view after) const {
  const std::string start = full(before);
  size_t n = 0;
  for (const TensorInfo& t : checkpoint_.tensors()) {
    if (!t.name.starts_with(start)) continue;
    size_t number = 0;
    const char *first = t.name.data() + start.size(), *last = t.name.data() + t.name.size();
    const auto [end, error] = std::from_chars(first, last, number);
    if (error == std::errc() && end != last && number < 10000) n = std::max(n, number + 1);
  }
  for (size_t i = 0; i < n; ++i)  // the highest may be there while another is not
    count(fmt::format("{}{}{}", before, i, after));
  return n;
}

std::optional<std::string> NameReader::stated(const std::string& key) const {
  const auto found = overrides_.find(key);
  return found == overrides_.end() ? std::nullopt : std::optional(found->second);
}

void RecipeWriter::tensor(const std::string& canonical, const std::string& file) {
  recipes[canonical].parts = {names_.full(file)};
}

void RecipeWriter::rows(const std::string& canonical, const std::string& file, size_t first) {
  Recipe& r = recipes[canonical];
  r.parts = {names_.full(file)};
  r.slice = true;
  r.first_row = first;
  r.rest = canonical == "pos_patches";  // a longer table is of another grid
}

void RecipeWriter::affine(const std::string& canonical, const std::string& file) {
  tensor(canonical + ".weight", file + ".weight");
  if (names_.has(file + ".bias")) tensor(canonical + ".bias", file + ".bias");
}

void RecipeWriter::stacked(const std::string& canonical, const std::vector<std::string>& files,
                           bool bias, const std::string& unbiased) {
  for (const std::string& file : files)
    recipes[canonical + ".weight"].parts.push_back(names_.full(file + ".weight"));
  if (!bias) return;
  for (const std::string& file : files) {
    const bool zeros = file == unbiased && !names_.has(file + ".bias");
    recipes[canonical + ".bias"].parts.push_back(zeros ? "" : names_.full(file + ".bias"));
  }
}

void RecipeWriter::embedding(const std::string& patch, const std::string& token,
                             const std::string& positions) {
  affine("patch_embed", patch);
  tensor("prefix", token);
  rows("pos_prefix", positions, 0);
  rows("pos_patches", positions, 1);
}

void RecipeWriter::clip_block(const std::string& b, const std::string& f) {
  const std::string q = f + "self_attn.";
  affine(b + "norm1", f + "layer_norm1");
  affine(b + "norm2", f + "layer_norm2");
  stacked(b + "attn.qkv", {q + "q_proj", q + "k_proj", q + "v_proj"}, true);
  affine(b + "attn.proj", q + "out_proj");
  affine(b + "mlp.fc1", f + "mlp.fc1");
  affine(b + "mlp.fc2", f + "mlp.fc2");
}

std::span<const Dialect* const> dialects() {
  static constexpr const Dialect* all[] = {
      &kDinov3AuthorsNames, &kDinov3PeriodsNames,  // before timm's: most names are the same
      &kKwtNames,           &kTimmNames,       &kEvaNames,       &kTorchvisionNames,
      &kSiglipNames,        &kHuggingfaceClipNames, &kClipNames, &kHuggingfaceVitNames,
      &kBertNames,          &kDistilbertNames, &kMpnetNames,     &kAlbertNames,
      &kModernbertNames,    &kT5Names,         &kAugregNames,    &kWhisperNames,
      &kDinov3Names,        &kAimv2Names,      &kTimmRotaryNames, &kTimmAimv2Names};
  return all;
}

void require_stated_key(const std::string& key) {
  static const std::set<std::string> known{
      "architecture", "frames",     "ignore",  "part",          "prefix", "heads",
      "size",         "activation", "pooling", "norm_epsilon",  "family", "mean",
      "std",          "resize",     "squash",  "interpolation", "crop"};
  if (!known.count(key))
    fail(fmt::format("'{}' is not a fact that can be stated", key), "`stated_facts`",
         fmt::format("choose one of: {}", fmt::join(known, ", ")));
}

Reading read_stated(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  static const std::set<std::string> kin{"mae", "moco", "augreg"};  // what a vit may also be
  if (const auto family = stated_facts.find("family"); family != stated_facts.end()) {
    std::set<std::string> choices = kin;
    for (const FamilyFacts& f : families()) choices.insert(f.name);
    if (!choices.count(family->second))
      fail(fmt::format("there is no family '{}'", family->second), "`stated_facts[family]`",
           fmt::format("choose one of: {}", fmt::join(choices, ", ")));
  }
  for (const auto& [key, value] : stated_facts) require_stated_key(key);
  NameReader names(checkpoint, stated_facts);
  for (const Dialect* dialect : dialects()) {
    if (!names.find_network(*dialect)) continue;
    if (dialect->text) refuse_own_code(checkpoint);
    Reading reading;
    RecipeWriter writer(names);
    dialect->read(names, reading.architecture, writer);
    reading.recipes = std::move(writer.recipes);
    reading.prefix = names.full("");
    check_reading(names, reading);
    std::vector<std::string> modules;
    if (dialect->text) read_sentence_modules(names, reading.architecture, modules);
    read_image_processor(checkpoint, stated_facts, reading.architecture);
    read_feature_extractor(checkpoint, stated_facts, reading.architecture);
    state_front_end(stated_facts, reading.architecture);
    state_preprocess(stated_facts, reading.architecture);
    check_preprocess(reading.architecture, checkpoint.path());
    const std::string& found = reading.architecture.family;
    if (const auto family = names.stated("family");
        family && !kin.count(*family) && *family != found)
      fail(fmt::format("the tensors are those of the family '{}', not '{}'", found, *family),
           checkpoint.path(), "leave out `stated_facts[family]`");
    reading.notes = notes_on(names, reading.architecture);
    reading.notes.insert(reading.notes.end(), modules.begin(), modules.end());
    return reading;
  }
  refuse_unknown(checkpoint);
}

Architecture read_architecture(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  return read_names(checkpoint, stated_facts).architecture;
}

std::vector<std::string> read_notes(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  return read_names(checkpoint, stated_facts).notes;
}

std::vector<FamilyFacts> families() {
  return {
      {"vit", "timm, torchvision, huggingface, augreg", "ViT, DeiT, AugReg, MAE, MoCo-v3",
       "class token or mean pooling; AugReg also as the original .npz"},
      {"deit-distilled", "timm, huggingface", "DeiT with a distillation token",
       "the embedding is the mean of both prefix tokens"},
      {"deit3", "timm", "DeiT-III", "layer scale; positions on patches only"},
      {"dino", "timm", "DINO S/8 to B/16",
       "own position interpolation; `stated_facts[family]=dino` when the file name does not say "
       "so"},
      {"dinov2", "timm, dinov2, huggingface", "DINOv2 S/14 to g/14, with or without registers",
       "layer scale, SwiGLU in the giant"},
      {"clip", "timm, openai, open_clip, huggingface", "CLIP image towers",
       "QuickGELU or GELU: stated where the file does not tell"},
      {"dinov3", "timm, dinov3, huggingface", "DINOv3 S to 7B",
       "rotary positions, any size; timm's pool the mean of the patches, Hugging Face's the class "
       "token"},
      {"siglip", "timm, huggingface", "SigLIP and SigLIP 2 image towers",
       "attention pools the patches; fixed resolution"},
      {"aimv2", "timm, huggingface", "AIMv2",
       "RMS norms, gated MLP; mean pooling, or attention where there is a head"},
      {"perception-encoder", "timm", "Perception Encoder core, language and spatial",
       "rotary positions beside a table; told by timm's config.json or name"},
      {"eva02-clip", "timm", "EVA-02-CLIP image towers", "rotary positions, SwiGLU, inner norms"},
      {"bert", "huggingface", "BERT, ELECTRA, Splinter",
       "token ids in; after-norm; padding is left out"},
      {"roberta", "huggingface", "RoBERTa, XLM-R, CamemBERT, data2vec",
       "BERT with other positions"},
      {"distilbert", "huggingface", "DistilBERT", "BERT with half the blocks, no token types"},
      {"mpnet", "huggingface", "MPNet", "BERT with other positions, and relative ones"},
      {"albert", "huggingface", "ALBERT", "BERT whose blocks share their weights; narrow words"},
      {"modernbert", "huggingface", "ModernBERT",
       "before-norm, gated, rotary positions; most blocks see near tokens alone"},
      {"t5", "huggingface", "T5, Flan-T5 and mT5 encoders",
       "token ids in; RMS norm, relative positions"},
      {"ast", "huggingface, ast, ssast", "AST, SSAST (by patches or frames)",
       "filter banks in; two prefix tokens, overlapping patches"},
      {"whisper", "huggingface", "Whisper encoders, of any size",
       "log-mel filter banks in; mean over the frames that hold sound"},
      {"kwt", "kwt", "Keyword Transformer KWT-1 to 3", "MFCC in; after-norm, class token"},
  };
}

}  // namespace fungi
