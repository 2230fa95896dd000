// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/backbone/backbone.h"

namespace fungi {
namespace {

// Training checkpoints hold several networks; these are the ones their authors evaluate.
bool preferred(const std::string& prefix) {
  for (const char* word : {"teacher", "base_encoder", "ema", "vision_model", "visual"})
    if (prefix.find(word) != std::string::npos && prefix.find("momentum") == std::string::npos)
      return true;
  return false;
}

size_t parse_size(const std::string& key, const std::string& value) {
  try {
    size_t used = 0;
    const unsigned long n = std::stoul(value, &used);
    if (used == value.size() && n > 0 && n <= 1u << 20) return n;
  } catch (const std::exception&) {
  }
  fail(fmt::format("'{}' is not a positive whole number", value), "--set " + key);
}

std::optional<nlohmann::json> config_value(const std::string& text, const char* pointer) {
  if (text.empty()) return {};
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  const nlohmann::json::json_pointer at(pointer);
  if (config.is_discarded() || !config.contains(at)) return {};
  return config.at(at);
}

}  // namespace

bool NameReader::find_prefix(std::string_view anchor, std::string_view also) {
  std::vector<std::string> found;
  for (const TensorInfo& t : checkpoint_.tensors()) {
    if (!t.name.ends_with(anchor)) continue;
    const std::string prefix = t.name.substr(0, t.name.size() - anchor.size());
    if (!prefix.empty() && prefix.back() != '.') continue;
    if (!also.empty() && !checkpoint_.find(prefix + std::string(also))) continue;
    found.push_back(prefix);
  }
  if (found.empty()) return false;
  if (const auto wanted = stated("prefix")) {
    for (const std::string& p : found)
      if (p == *wanted || p == *wanted + ".") return prefix_ = p, true;
    fail(fmt::format("there is no network under '{}'", *wanted), checkpoint_.path(),
         fmt::format("choose --set prefix= one of: '{}'", fmt::join(found, "', '")));
  }
  if (found.size() > 1) {
    std::vector<std::string> better;
    std::copy_if(found.begin(), found.end(), std::back_inserter(better), preferred);
    if (better.size() != 1)
      fail(fmt::format("the file holds {} networks", found.size()), checkpoint_.path(),
           fmt::format("choose --set prefix= one of: '{}'", fmt::join(found, "', '")));
    found = better;
  }
  prefix_ = found.front();
  return true;
}

size_t NameReader::dimension(std::string_view name, size_t axis) const {
  const TensorInfo* t = checkpoint_.find(full(name));
  if (!t)
    fail("the tensor is missing", fmt::format("{}: {}", checkpoint_.path(), full(name)),
         "the file is incomplete or of another architecture");
  if (axis >= t->shape.size() || t->shape[axis] == 0)
    fail(fmt::format("the shape is {}, which has no axis {}", t->shape_text(), axis),
         fmt::format("{}: {}", checkpoint_.path(), full(name)));
  return t->shape[axis];
}

size_t NameReader::count(std::string_view name) const {
  const TensorInfo* t = checkpoint_.find(full(name));
  if (!t)
    fail("the tensor is missing", fmt::format("{}: {}", checkpoint_.path(), full(name)),
         "the file is incomplete or of another architecture");
  return t->count();
}

size_t NameReader::count_blocks(std::string_view before, std::string_view after) const {
  size_t n = 0;
  while (has(fmt::format("{}{}{}", before, n, after))) ++n;
  return n;
}

std::optional<std::string> NameReader::stated(const std::string& key) const {
  const auto found = overrides_.find(key);
  return found == overrides_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> NameReader::config_text(const char* pointer) const {
  const auto value = config_value(checkpoint_.config(), pointer);
  return value && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

std::optional<double> NameReader::config_number(const char* pointer) const {
  const auto value = config_value(checkpoint_.config(), pointer);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

void RecipeWriter::tensor(const std::string& canonical, const std::string& file) {
  recipes[canonical].parts = {names_.full(file)};
}

void RecipeWriter::rows(const std::string& canonical, const std::string& file, size_t first) {
  Recipe& r = recipes[canonical];
  r.parts = {names_.full(file)};
  r.slice = true;
  r.first_row = first;
}

void RecipeWriter::affine(const std::string& canonical, const std::string& file) {
  tensor(canonical + ".weight", file + ".weight");
  if (names_.has(file + ".bias")) tensor(canonical + ".bias", file + ".bias");
}

void RecipeWriter::stacked(const std::string& canonical, const std::vector<std::string>& files,
                           bool bias) {
  for (const std::string& file : files)
    recipes[canonical + ".weight"].parts.push_back(names_.full(file + ".weight"));
  if (!bias) return;
  for (const std::string& file : files)
    recipes[canonical + ".bias"].parts.push_back(
        names_.has(file + ".bias") ? names_.full(file + ".bias") : "");
}

size_t guess_heads(const NameReader& names, size_t width) {
  if (const auto stated = names.stated("heads")) return parse_size("heads", *stated);
  for (const char* key : {"/num_attention_heads", "/vision_config/num_attention_heads",
                          "/model_args/num_heads", "/num_heads"})
    if (const auto n = names.config_number(key)) return size_t(*n);
  for (const auto& [known, heads] :
       {std::pair<size_t, size_t>{1152, 16}, {1280, 16}, {1408, 16}, {1664, 16}})
    if (width == known) return heads;  // the huge and giant ViTs have wider heads than 64
  if (width % 64 == 0) return width / 64;
  fail(fmt::format("a width of {} does not tell the number of heads", width),
       names.checkpoint().path(), "state it: --set heads=N");
}

void set_square_grid(const NameReader& names, Architecture& a, size_t positions) {
  const size_t side = size_t(std::lround(std::sqrt(double(positions))));
  if (side == 0 || side * side != positions)
    fail(fmt::format("{} patch positions do not form a square", positions),
         names.checkpoint().path(),
         "state the input size of another layout is not supported for images");
  a.stored_grid_h = a.stored_grid_w = side;
  a.input_h = side * a.patch_h, a.input_w = side * a.patch_w;
}

void apply_stated_facts(const NameReader& names, Architecture& a) {
  static const std::set<std::string> image_keys{"size"};
  if (const auto v = names.stated("size")) {
    const size_t x = v->find('x');
    a.input_h = parse_size("size", v->substr(0, x));
    a.input_w = x == std::string::npos ? a.input_h : parse_size("size", v->substr(x + 1));
    a.preprocess.resize = a.preprocess.resize * a.input_h / 224;
  }
  if (const auto v = names.stated("activation")) a.activation = parse_activation(*v);
  if (const auto v = names.stated("pooling")) a.pooling = parse_pooling(*v);
  if (const auto v = names.stated("norm_epsilon")) {
    a.norm_epsilon = std::strtof(v->c_str(), nullptr);
    if (!(a.norm_epsilon > 0 && a.norm_epsilon < 1))
      fail(fmt::format("'{}' is not a small positive number", *v), "--set norm_epsilon");
  }
  a.head_dim = a.head_dim ? a.head_dim : a.width / std::max<size_t>(a.heads, 1);
  if (!a.head) a.embedding_width = a.width;
}

void check(const NameReader& names, const Architecture& a) {
  const std::string& place = names.checkpoint().path();
  if (a.depth == 0 || a.width == 0 || a.heads == 0 || a.head_dim == 0 || a.mlp_hidden == 0)
    fail(fmt::format("impossible sizes: width {}, depth {}, heads {}, mlp {}", a.width, a.depth,
                     a.heads, a.mlp_hidden),
         place, "see `fungi inspect`");
  if (a.input != InputKind::token_ids) {
    if (a.patch_h == 0 || a.patch_w == 0 || a.input_h < a.patch_h || a.input_w < a.patch_w ||
        a.tokens() > 1u << 20)
      fail(fmt::format("an input of {}x{} does not hold patches of {}x{}", a.input_h, a.input_w,
                       a.patch_h, a.patch_w),
           place, "choose another --set size=");
    if (a.input == InputKind::image && (a.input_h % a.patch_h || a.input_w % a.patch_w))
      fail(fmt::format("the input size {}x{} is not a multiple of the patch {}x{}", a.input_h,
                       a.input_w, a.patch_h, a.patch_w),
           place, "choose another --set size=");
    if ((a.pooling == Pooling::first || a.pooling == Pooling::mean_prefix) &&
        a.pooled_tokens() == 0)
      fail("the model has no class token to pool", place, "--set pooling=mean_patches");
  }
  if (!a.relative_buckets && a.attention_width() != a.width)
    fail(fmt::format("{} heads of {} do not make the width {}", a.heads, a.head_dim, a.width),
         place, "state the right number: --set heads=N");
  if (a.rotary && a.head_dim % 4)
    fail(fmt::format("rotary positions need a head width divisible by 4, not {}", a.head_dim),
         place, "--set heads=N");
}

Reading read_names(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  static const std::set<std::string> known{"prefix",  "heads",        "size",  "activation",
                                           "pooling", "norm_epsilon", "family"};
  for (const auto& [key, value] : stated_facts)
    if (!known.count(key))
      fail(fmt::format("'{}' is not a fact that can be stated", key), "--set",
           fmt::format("choose one of: {}", fmt::join(known, ", ")));
  using Dialect = std::optional<Reading> (*)(const Checkpoint&, const StatedFacts&);
  for (Dialect dialect :
       {Dialect(read_timm_names), Dialect(read_eva_names), Dialect(read_torchvision_names),
        Dialect(read_huggingface_clip_names), Dialect(read_clip_names),
        Dialect(read_huggingface_vit_names), Dialect(read_bert_names), Dialect(read_t5_names),
        Dialect(read_augreg_names)})
    if (auto reading = dialect(checkpoint, stated_facts)) return std::move(*reading);
  const auto& tensors = checkpoint.tensors();
  fail(
      fmt::format("none of the {} tensors belongs to an architecture known here{}", tensors.size(),
                  tensors.empty() ? "" : fmt::format(" (the first is '{}')", tensors.front().name)),
      checkpoint.path(), "`fungi models` lists the families; `fungi inspect` lists the tensors");
}

std::vector<FamilyFacts> families() {
  return {
      {"vit", "timm, torchvision, huggingface, augreg", "ViT, DeiT, AugReg, MAE, MoCo-v3",
       "class token or mean pooling; AugReg also as the original .npz"},
      {"deit-distilled", "timm", "DeiT with a distillation token",
       "the embedding is the mean of both prefix tokens"},
      {"deit3", "timm", "DeiT-III", "layer scale; positions on patches only"},
      {"dino", "timm", "DINO S/8 to B/16",
       "own position interpolation; --set family=dino when the file name does not say so"},
      {"dinov2", "timm, dinov2, huggingface", "DINOv2 S/14 to g/14, with or without registers",
       "layer scale, SwiGLU in the giant"},
      {"clip", "timm, openai, open_clip, huggingface", "CLIP image towers",
       "QuickGELU or GELU: stated where the file does not tell"},
      {"eva02-clip", "timm", "EVA-02-CLIP image towers", "rotary positions, SwiGLU, inner norms"},
      {"bert", "huggingface", "BERT and its kin", "token ids in; after-norm; padding is left out"},
      {"t5", "huggingface", "T5 encoders", "token ids in; RMS norm, relative positions"},
      {"ast", "huggingface, ssast", "AST, SSAST",
       "filter banks in; two prefix tokens, overlapping patches"},
  };
}

}  // namespace fungi
