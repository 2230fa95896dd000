// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

size_t parse_size(const std::string& key, const std::string& value) {
  try {
    size_t used = 0;
    const unsigned long n = std::stoul(value, &used);
    if (used == value.size() && n > 0 && n <= 1u << 20) return n;
  } catch (const std::exception&) {
  }
  fail(fmt::format("expected a whole number from 1 to {}, found '{}'", 1u << 20, value),
       "--set " + key);
}

// "384" or "384x256", height first.
std::optional<std::pair<size_t, size_t>> stated_size(const NameReader& names) {
  const auto text = names.stated("size");
  if (!text) return {};
  const size_t x = text->find('x'), h = parse_size("size", text->substr(0, x));
  return std::pair(h, x == std::string::npos ? h : parse_size("size", text->substr(x + 1)));
}

// The input size that config.json tells, in the words of timm or of Hugging Face.
std::optional<std::pair<size_t, size_t>> config_input_size(const NameReader& names) {
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [h, w] :
       {Pair{"/pretrained_cfg/input_size/1", "/pretrained_cfg/input_size/2"},
        Pair{"/image_size/0", "/image_size/1"}, Pair{"/image_size", "/image_size"},
        Pair{"/vision_config/image_size", "/vision_config/image_size"}})
    if (const auto height = names.config_size(h), width = names.config_size(w); height && width)
      return std::pair(*height, *width);
  return {};
}

}  // namespace

size_t NameReader::dimension(std::string_view name, size_t axis) const {
  const TensorInfo* t = checkpoint_.find(full(name));
  if (!t) refuse_missing(*this, full(name));
  if (axis >= t->shape.size() || t->shape[axis] == 0)
    fail(fmt::format("the shape is {}, which has no axis {}", t->shape_text(), axis),
         fmt::format("{}: {}", checkpoint_.path(), printable(full(name))),
         "the file is of another architecture; `fungi models` lists those known");
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

void set_heads(const NameReader& names, Architecture& a, size_t left_out) {
  if (const auto stated = names.stated("heads")) {
    a.heads = parse_size("heads", *stated);
    return;
  }
  for (const char* key : {"/num_attention_heads", "/vision_config/num_attention_heads",
                          "/model_args/num_heads", "/num_heads"})
    if (const auto n = names.config_size(key)) {
      a.heads = *n;
      return;
    }
  if (left_out && !names.checkpoint().config().empty()) {
    a.heads = left_out;
    return;
  }
  a.heads_assumed = true;
  if (names.config_text("/architecture") == "vit_base_patch16_gap_224") a.heads = 16;  // I-JEPA's
  // MoCo-v3's small ViT has twice as many heads as others of its width.
  if (a.width == 384 && names.full("").find("base_encoder.") != std::string::npos) a.heads = 12;
  for (const auto& [known, heads] :
       {std::pair<size_t, size_t>{1152, 16}, {1280, 16}, {1408, 16}, {1664, 16}})
    if (a.width == known) a.heads = heads;  // the huge and giant ViTs have wider heads than 64
  if (a.heads == 0 && a.width % 64 == 0) a.heads = a.width / 64;
  if (a.heads == 0)
    fail(fmt::format("a width of {} does not tell the number of heads", a.width),
         names.checkpoint().path(), "state it: --set heads=N");
}

namespace {

std::optional<std::pair<size_t, size_t>> grid_of(
    const std::optional<std::pair<size_t, size_t>>& size, const Architecture& a, size_t positions) {
  if (!size || positions == 0 || a.patch_h == 0 || a.patch_w == 0 ||
      size->first / a.patch_h * (size->second / a.patch_w) != positions)
    return {};
  return std::pair(size->first / a.patch_h, size->second / a.patch_w);
}

}  // namespace

bool stated_size_has(const NameReader& names, const Architecture& a, size_t positions) {
  return grid_of(stated_size(names), a, positions).has_value();
}

bool config_size_has(const NameReader& names, const Architecture& a, size_t positions) {
  return grid_of(config_input_size(names), a, positions).has_value();
}

bool is_square(size_t positions) {
  const auto side = size_t(std::lround(std::sqrt(double(positions))));
  return side > 0 && side * side == positions;
}

std::optional<std::pair<size_t, size_t>> find_grid(const NameReader& names, const Architecture& a,
                                                   size_t positions) {
  if (const auto grid = grid_of(config_input_size(names), a, positions)) return grid;
  const auto side = size_t(std::lround(std::sqrt(double(positions))));
  if (is_square(positions)) return std::pair(side, side);
  return grid_of(stated_size(names), a, positions);
}

void set_grid(const NameReader& names, Architecture& a, size_t positions,
              const std::string& token) {
  const auto grid = find_grid(names, a, positions);
  if (!grid) {
    const bool one_more = !token.empty() && positions > 1 && find_grid(names, a, positions - 1);
    fail(fmt::format("{} patch positions do not form a square{}", positions,
                     one_more ? fmt::format(", but one less would: is the tensor {} missing?",
                                            printable(names.full(token)))
                              : ""),
         names.checkpoint().path(),
         fmt::format("{}state the input size that has so many patches of {}x{}: --set size=HxW",
                     one_more ? "get the whole file; or, where it is whole, " : "", a.patch_h,
                     a.patch_w));
  }
  std::tie(a.stored_grid_h, a.stored_grid_w) = *grid;
  std::tie(a.input_h, a.input_w) =
      stated_size(names).value_or(std::pair(grid->first * a.patch_h, grid->second * a.patch_w));
}

void apply_stated_facts(const NameReader& names, Architecture& a) {
  if (const auto size = stated_size(names)) {  // of images it is known already: set_grid()
    if (a.input == InputKind::token_ids)
      fail("a text has no input size", "--set size", "leave it out");
    std::tie(a.input_h, a.input_w) = *size;
  }
  if (const auto v = names.stated("activation")) a.activation = parse_activation(*v);
  if (const auto v = names.stated("pooling")) a.pooling = parse_pooling(*v);
  if (const auto v = names.stated("norm_epsilon")) {
    char* end = nullptr;
    a.norm_epsilon = std::strtof(v->c_str(), &end);
    if (*end != '\0' || !(a.norm_epsilon > 0 && a.norm_epsilon < 1))
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
    if (a.stored_grid_h == 0 || a.stored_grid_w == 0)
      fail(fmt::format("a position table of {}x{} patches", a.stored_grid_h, a.stored_grid_w),
           place, "the file is incomplete or of another architecture");
    constexpr size_t most = 1u << 20;  // of each before their product is taken
    if (a.patch_h == 0 || a.patch_w == 0 || a.stride_h == 0 || a.stride_w == 0 ||
        a.input_h < a.patch_h || a.input_w < a.patch_w || a.input_h > most || a.input_w > most ||
        a.tokens() > most)
      fail(fmt::format("an input of {}x{} does not hold patches of {}x{}", a.input_h, a.input_w,
                       a.patch_h, a.patch_w),
           place, "choose another --set size=");
    if (a.input == InputKind::image && (a.input_h % a.patch_h || a.input_w % a.patch_w))
      fail(fmt::format("the input size {}x{} is not a multiple of the patch {}x{}", a.input_h,
                       a.input_w, a.patch_h, a.patch_w),
           place, "choose another --set size=");
    if ((a.pooling == Pooling::first || a.pooling == Pooling::mean_prefix) &&
        a.prefix_tokens == a.registers)
      fail(fmt::format("the model has no class token to pool (no {})",
                       printable(names.full("cls_token"))),
           place, "is the file complete? Then state --set pooling=mean_patches");
  } else if (a.pooling == Pooling::mean_prefix || a.pooling == Pooling::mean_patches) {
    fail(fmt::format("a text has no {}", a.pooling == Pooling::mean_prefix ? "prefix" : "patches"),
         place, "--set pooling=first or mean_all");
  }
  if (!(a.norm_epsilon >= 0 && a.norm_epsilon < 1))
    fail(fmt::format("a norm's epsilon of {} is impossible", a.norm_epsilon), place,
         "state it: --set norm_epsilon=1e-6");
  if (!a.relative_buckets && a.attention_width() != a.width)
    fail(fmt::format("{} heads of {} do not make the width {}", a.heads, a.head_dim, a.width),
         place, "state the right number: --set heads=N");
  if (a.rotary && a.head_dim % 4)
    fail(fmt::format("rotary positions need a head width divisible by 4, not {}", a.head_dim),
         place, "--set heads=N");
}

Reading read_names(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  static const std::set<std::string> known{"prefix",  "heads",        "size",   "activation",
                                           "pooling", "norm_epsilon", "family", "mean",
                                           "std",     "resize",       "squash", "interpolation"};
  static const std::set<std::string> kin{"mae", "moco", "augreg"};  // what a vit may also be
  if (const auto family = stated_facts.find("family"); family != stated_facts.end()) {
    std::set<std::string> choices = kin;
    for (const FamilyFacts& f : families()) choices.insert(f.name);
    if (!choices.count(family->second))
      fail(fmt::format("there is no family '{}'", family->second), "--set family",
           fmt::format("choose one of: {}", fmt::join(choices, ", ")));
  }
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
    if (auto reading = dialect(checkpoint, stated_facts)) {
      check_reading(NameReader(checkpoint, stated_facts), *reading);
      read_image_processor(checkpoint, stated_facts, reading->architecture);
      state_preprocess(stated_facts, reading->architecture);
      check_preprocess(reading->architecture, checkpoint.path());
      const std::string& found = reading->architecture.family;
      if (const auto f = stated_facts.find("family");
          f != stated_facts.end() && !kin.count(f->second) && f->second != found)
        fail(fmt::format("the tensors are those of the family '{}', not '{}'", found, f->second),
             checkpoint.path(), "leave out --set family");
      return std::move(*reading);
    }
  refuse_unknown(checkpoint);
}

std::vector<FamilyFacts> families() {
  return {
      {"vit", "timm, torchvision, huggingface, augreg", "ViT, DeiT, AugReg, MAE, MoCo-v3",
       "class token or mean pooling; AugReg also as the original .npz"},
      {"deit-distilled", "timm, huggingface", "DeiT with a distillation token",
       "the embedding is the mean of both prefix tokens"},
      {"deit3", "timm", "DeiT-III", "layer scale; positions on patches only"},
      {"dino", "timm", "DINO S/8 to B/16",
       "own position interpolation; --set family=dino when the file name does not say so"},
      {"dinov2", "timm, dinov2, huggingface", "DINOv2 S/14 to g/14, with or without registers",
       "layer scale, SwiGLU in the giant"},
      {"clip", "timm, openai, open_clip, huggingface", "CLIP image towers",
       "QuickGELU or GELU: stated where the file does not tell"},
      {"eva02-clip", "timm", "EVA-02-CLIP image towers", "rotary positions, SwiGLU, inner norms"},
      {"bert", "huggingface", "BERT, ELECTRA, Splinter",
       "token ids in; after-norm; padding is left out"},
      {"roberta", "huggingface", "RoBERTa, XLM-R, CamemBERT, data2vec",
       "BERT with other positions"},
      {"t5", "huggingface", "T5 and mT5 encoders", "token ids in; RMS norm, relative positions"},
      {"ast", "huggingface, ssast", "AST, SSAST",
       "filter banks in; two prefix tokens, overlapping patches"},
  };
}

}  // namespace fungi
