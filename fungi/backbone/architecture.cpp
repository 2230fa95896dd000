// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "fungi/base/error.h"

namespace fungi {
namespace {

template <class E>
E parse(std::string_view name, std::initializer_list<E> values, const char* what) {
  std::string choices;
  for (E value : values) {
    if (name == to_string(value)) return value;
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", to_string(value));
  }
  fail(fmt::format("unknown {} '{}'", what, name), "", "choose one of: " + choices);
}

}  // namespace

size_t Architecture::pooled_tokens() const {
  switch (pooling) {
    case Pooling::first:
      return 1;
    case Pooling::mean_prefix:
      return prefix_tokens - registers;
    default:
      return 0;
  }
}

size_t Architecture::sound_tokens(size_t frames) const {
  if (frames == 0 || frames >= input_w) return patches();
  return std::min((frames - 1) / stride_w + 1, patches());
}

double Architecture::forward_flops(size_t t) const {
  const double inner = double(attention_width()), d = double(width),
               fc1 = double(mlp_hidden) * (gated_mlp ? 2 : 1);
  const double per_token = 2 * d * (4 * inner + fc1 + double(mlp_hidden)) + 4 * double(t) * inner;
  const double per_patch =
      convolutions ? 3 * (2 * double(patch_h) + d) : double(channels * patch_h * patch_w);
  const double embed = input == InputKind::token_ids ? 2 * d * double(word_width * t)
                                                     : 2 * d * per_patch * double(patches());
  const double pool = pooling == Pooling::attention
                          ? 4 * d * d * double(t + 1) + 4 * d * (double(t) + double(pool_hidden))
                          : 0;
  return double(depth) * double(t) * per_token + embed + pool +
         (head ? 2 * d * double(embedding_width) : 0);
}

const char* to_string(InputKind kind) {
  switch (kind) {
    case InputKind::image:
      return "image";
    case InputKind::filter_bank:
      return "filter_bank";
    case InputKind::token_ids:
      return "token_ids";
  }
  return "";
}

const char* to_string(Pooling pooling) {
  switch (pooling) {
    case Pooling::first:
      return "first";
    case Pooling::mean_prefix:
      return "mean_prefix";
    case Pooling::mean_patches:
      return "mean_patches";
    case Pooling::mean_all:
      return "mean_all";
    case Pooling::mean_sqrt:
      return "mean_sqrt";
    case Pooling::max_all:
      return "max_all";
    case Pooling::mean_sound:
      return "mean_sound";
    case Pooling::attention:
      return "attention";
  }
  return "";
}

const char* to_string(PositionResize resize) {
  switch (resize) {
    case PositionResize::antialias_bicubic:
      return "antialias_bicubic";
    case PositionResize::bicubic_offset:
      return "bicubic_offset";
    case PositionResize::bicubic:
      return "bicubic";
    case PositionResize::bicubic_corners:
      return "bicubic_corners";
    case PositionResize::bilinear:
      return "bilinear";
    case PositionResize::cut_bilinear:
      return "cut_bilinear";
    case PositionResize::cut:
      return "cut";
  }
  return "";
}

const char* to_string(kernel::Activation activation) {
  switch (activation) {
    case kernel::Activation::none:
      return "none";
    case kernel::Activation::relu:
      return "relu";
    case kernel::Activation::gelu:
      return "gelu";
    case kernel::Activation::gelu_tanh:
      return "gelu_tanh";
    case kernel::Activation::quick_gelu:
      return "quick_gelu";
    case kernel::Activation::silu:
      return "silu";
  }
  return "";
}

kernel::Activation parse_activation(std::string_view name) {
  for (const char* word : {"gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh"})
    if (name == word) return kernel::Activation::gelu_tanh;  // Hugging Face's words, as those below
  if (name == "gelu_python") return kernel::Activation::gelu;
  if (name == "swish") return kernel::Activation::silu;
  using enum kernel::Activation;
  return parse(name, {relu, gelu, gelu_tanh, quick_gelu, silu}, "activation");
}

Pooling parse_pooling(std::string_view name) {
  using enum Pooling;
  return parse(
      name, {first, mean_prefix, mean_patches, mean_all, mean_sqrt, max_all, mean_sound, attention},
      "pooling");
}

Architecture named_architecture(std::string_view name) {
  static const std::map<std::string, std::array<size_t, 3>> sizes{
      {"tiny", {192, 12, 3}},    {"small", {384, 12, 6}},  {"base", {768, 12, 12}},
      {"large", {1024, 24, 16}}, {"huge", {1280, 32, 16}}, {"giant", {1536, 40, 24}}};
  static const std::map<std::string, std::string> letters{
      {"t", "tiny"}, {"s", "small"}, {"b", "base"}, {"l", "large"}, {"g", "giant"}};
  const std::string text(name);
  std::smatch m;
  std::string size;
  Architecture a;
  size_t patch = 16, input = 224;
  if (std::regex_match(
          text, m,
          std::regex("(vit|deit)_(tiny|small|base|large|huge)_patch(\\d{1,6})_(\\d{1,6})"))) {
    size = m[2], patch = std::stoul(m[3]), input = std::stoul(m[4]);
  } else if (std::regex_match(text, m, std::regex("dino_vit([tsblg])(\\d{1,6})"))) {
    size = letters.at(m[1]), patch = std::stoul(m[2]);
    a.family = "dino", a.position_resize = PositionResize::bicubic_offset;
  } else if (std::regex_match(text, m, std::regex("dinov2_vit([sbl])14"))) {
    size = letters.at(m[1]), patch = 14;
    a.family = "dinov2", a.layer_scale = true, a.position_resize = PositionResize::bicubic_offset;
  } else {
    fail(fmt::format("'{}' is neither a file nor an architecture known by name", name), "",
         "give a checkpoint file, or a name such as vit_base_patch16_224, deit_tiny_patch16_224, "
         "dino_vitb16, dinov2_vits14");
  }
  const auto& [width, depth, heads] = sizes.at(size);
  a.width = a.embedding_width = width, a.depth = depth, a.heads = heads;
  a.head_dim = width / heads, a.mlp_hidden = 4 * width;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = patch;
  a.input_h = a.input_w = input;
  if (patch == 0 || input < patch || input > 4096 || width % heads)
    fail(fmt::format("'{}' has impossible sizes", name), "",
         "the patch must be at most the input size, and that at most 4096");
  a.stored_grid_h = a.stored_grid_w = input / patch;
  return a;
}

namespace {

std::string describe_rotary(const Architecture& a) {
  const char* order = a.rotary_columns_first ? "columns first" : "rows first";
  if (a.rotary_centred) return fmt::format("from -1 to 1, {}, theta {:g}", order, a.rotary_theta);
  if (!a.rotary_offset && !a.rotary_columns_first && a.rotary_theta == 10000 && a.rotary_grid)
    return fmt::format("reference grid {}", a.rotary_grid);
  return fmt::format("{}, from {:g}, {}, theta {:g}",
                     a.rotary_grid ? fmt::format("reference grid {}", a.rotary_grid) : "own grid",
                     a.rotary_offset, order, a.rotary_theta);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const Architecture& a) {
  std::vector<std::pair<std::string, std::string>> lines;
  auto add = [&](const char* name, auto value) {
    lines.emplace_back(name, fmt::format("{}", value));
  };
  add("family", a.family);
  add("dialect", a.dialect);
  add("input", to_string(a.input));
  add("width", a.width);
  add("depth", a.depth);
  add("heads", a.heads);
  if (a.heads_assumed)
    add("heads_from", "assumed by the width; `stated_facts[heads]=N` states another");
  add("head_dim", a.head_dim);
  add("mlp_hidden", a.mlp_hidden);
  add("embedding_width", a.embedding_width);
  if (a.input == InputKind::token_ids) {
    add("vocabulary", a.vocabulary);
    if (a.word_width) add("word_width", a.word_width);
    if (a.max_positions) add("max_positions", a.max_positions);
    if (a.padding_id) add("padding_id", *a.padding_id);
    if (a.relative_buckets) add("relative_buckets", a.relative_buckets);
  } else {
    add("input_size", fmt::format("{}x{}x{}", a.channels, a.input_h, a.input_w));
    if (a.convolutions)
      add("convolutions", "over 3 frames, then over 3 of every other; gelu");
    else
      add("patch", fmt::format("{}x{}", a.patch_h, a.patch_w));
    if (!a.convolutions && (a.stride_h != a.patch_h || a.stride_w != a.patch_w))
      add("stride", fmt::format("{}x{}", a.stride_h, a.stride_w));
    add("prefix_tokens", a.prefix_tokens);
    if (a.registers) add("registers", a.registers);
    add("tokens", a.tokens());
    if (!a.position_table)
      add("positions", "no table");
    else if (a.grid_h() != a.stored_grid_h || a.grid_w() != a.stored_grid_w)
      add("positions", fmt::format("{}x{} resized to {}x{} by {}", a.stored_grid_h, a.stored_grid_w,
                                   a.grid_h(), a.grid_w(), to_string(a.position_resize)));
  }
  add("norm", fmt::format("{}, {}, epsilon {:g}", a.rms_norm ? "rms" : "layer",
                          a.post_norm ? "after" : "before", a.norm_epsilon));
  if (!a.norm_bias && !a.rms_norm) add("norm_bias", "no");
  if (!a.first_norm) add("first_norm", "no");
  if (a.patch_norm) add("patch_norm", "yes");
  if (a.norm_pre) add("embedding_norm", "yes");
  if (a.shared_blocks) add("shared_blocks", fmt::format("{} for all {}", a.shared_blocks, a.depth));
  if (a.layer_scale) add("layer_scale", "yes");
  if (!a.linear_bias) add("linear_bias", "no");
  if (a.attention_norm) add("attention_norm", "yes");
  if (a.mlp_norm) add("mlp_norm", "yes");
  add("activation", fmt::format("{}{}", to_string(a.activation), a.gated_mlp ? ", gated" : ""));
  if (a.rotary && a.input == InputKind::token_ids)
    add("rotary",
        fmt::format("theta {:g}, in local blocks {:g}", a.rotary_theta, a.local_rotary_theta));
  else if (a.rotary)
    add("rotary", describe_rotary(a));
  if (a.local_distance)
    add("local_attention", fmt::format("{} tokens to each side, but every {}th block sees all",
                                       a.local_distance, a.global_every));
  add("pooling",
      fmt::format("{}{}{}", to_string(a.pooling), a.norm_after_pooling ? ", then norm" : "",
                  a.unit_embedding ? ", then length 1" : ""));
  if (a.pooling == Pooling::attention)
    add("attention_pooling",
        fmt::format("{} heads, of {}{}", a.pool_heads, a.pool_prefix ? "all tokens" : "the patches",
                    a.pool_hidden ? fmt::format(", then an MLP of {} ({})", a.pool_hidden,
                                                to_string(a.pool_activation))
                                  : ""));
  if (a.head) add("head", fmt::format("{} -> {}", a.width, a.embedding_width));
  add("parameters", a.parameters());
  if (a.input == InputKind::filter_bank) {
    const SoundFrontEnd& f = a.sound.front_end;
    std::string statistics;
    if (f.kind == SoundFrontEnd::Kind::kaldi && f.normalise)
      statistics = fmt::format(", mean {:g}, std {:g}", f.mean, f.std);
    add("front_end",
        fmt::format("{}, {} numbers of {} frames, every {} of {} samples a second{} ({})",
                    to_string(f.kind), f.bins, f.frames, f.hop, f.rate, statistics,
                    a.sound.source));
  }
  if (a.input == InputKind::image) {
    const PreprocessFacts& p = a.preprocess;
    add("preprocess",
        fmt::format("{} {} {}, crop {}x{}, mean {:g} {:g} {:g}, std {:g} {:g} {:g} ({})",
                    p.transform.squashes() ? "both sides" : "short side", p.transform.resize_size,
                    p.transform.filter == Filter::bilinear ? "bilinear" : "bicubic", a.input_h,
                    a.input_w, p.transform.mean[0], p.transform.mean[1], p.transform.mean[2],
                    p.transform.std[0], p.transform.std[1], p.transform.std[2], p.source));
  }
  return lines;
}

}  // namespace fungi
