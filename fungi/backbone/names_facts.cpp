// SPDX-License-Identifier: Apache-2.0
// Facts that every dialect settles in the same way: the number of heads, the grid and the input
// size, what the user stated; and what is impossible of them.
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "fungi/backbone/names.h"
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
       "`stated_facts[" + key + "]`");
}

// The input size that config.json tells, in the words of timm or of Hugging Face.
std::optional<std::pair<size_t, size_t>> config_input_size(const NameReader& names) {
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [h, w] :
       {Pair{"/model_args/img_size/0", "/model_args/img_size/1"},
        Pair{"/model_args/img_size", "/model_args/img_size"},
        Pair{"/pretrained_cfg/input_size/1", "/pretrained_cfg/input_size/2"},
        Pair{"/image_size/0", "/image_size/1"}, Pair{"/image_size", "/image_size"}})
    if (const auto height = names.config_size(h), width = names.config_size(w); height && width)
      return std::pair(*height, *width);
  return {};
}

std::optional<std::pair<size_t, size_t>> grid_of(
    const std::optional<std::pair<size_t, size_t>>& size, const Architecture& a, size_t positions) {
  if (!size || positions == 0 || a.patch_h == 0 || a.patch_w == 0 ||
      size->first / a.patch_h * (size->second / a.patch_w) != positions)
    return {};
  return std::pair(size->first / a.patch_h, size->second / a.patch_w);
}

void apply_stated(const NameReader& names, Architecture& a) {
  const bool bank = a.input == InputKind::filter_bank;
  if (const auto size =
          stated_size(names, bank ? a.input_h : 0)) {  // of images it is known already: set_grid()
    if (a.input == InputKind::token_ids)
      fail("a text has no input size", "`stated_facts[size]`", "leave it out");
    std::tie(a.input_h, a.input_w) = *size;
  }
  if (const auto v = names.stated("activation")) a.activation = parse_activation(*v);
  if (const auto v = names.stated("pooling")) a.pooling = parse_pooling(*v);
  if (const auto v = names.stated("norm_epsilon")) {
    char* end = nullptr;
    a.norm_epsilon = std::strtof(v->c_str(), &end);
    if (*end != '\0' || !(a.norm_epsilon > 0 && a.norm_epsilon < 1))
      fail(fmt::format("'{}' is not a small positive number", *v), "`stated_facts[norm_epsilon]`");
  }
  a.head_dim = a.head_dim ? a.head_dim : a.width / std::max<size_t>(a.heads, 1);
  if (!a.head) a.embedding_width = a.width;
}

// A size that has so many patches, not too far from a square; nothing else tells it.
std::string state_rectangle(const Architecture& a, size_t positions) {
  const size_t rows = positions + (a.position_on_prefix ? a.prefix_tokens - a.registers : 0);
  if (a.dialect == "timm" && rows != positions && is_square(rows)) {
    const auto side = size_t(std::lround(std::sqrt(double(rows))));
    return fmt::format("if all {} positions are those of patches: `stated_facts[size]={}x{}`", rows,
                       side * a.patch_h, side * a.patch_w);
  }
  size_t low = size_t(std::sqrt(double(positions)));
  while (low > 1 && positions % low) --low;
  if (low == 0 || positions / low > 8 * low)
    return "this variant is not among those that `models` lists";
  const size_t high = positions / low;
  return fmt::format(
      "state the input size that has so many patches of {}x{}, as `stated_facts[size]={}x{}` or "
      "`stated_facts[size]={}x{}` do{}",
      a.patch_h, a.patch_w, low * a.patch_h, high * a.patch_w, high * a.patch_h, low * a.patch_w,
      a.channels == 3 ? "; `extract` runs squares alone" : "");
}

// The size that the table of positions was trained for, or near the wanted one.
std::string state_size(const Architecture& a) {
  const auto near = [](size_t wanted, size_t patch, size_t stored) {
    const size_t own = std::max<size_t>(patch * stored, 1);
    return patch && wanted / patch && wanted <= 4 * own ? wanted / patch * patch : own;
  };
  return fmt::format("choose another one: `stated_facts[size]={}x{}`",
                     near(a.input_h, a.patch_h, a.stored_grid_h),
                     near(a.input_w, a.patch_w, a.stored_grid_w));
}

void check_sound(const NameReader& names, const Architecture& a) {
  const std::string& place = names.checkpoint().path();
  const bool bank = a.input == InputKind::filter_bank, one_row = a.stored_grid_h == 1;
  if (a.pooling == Pooling::mean_sound && !(bank && one_row))
    fail("pooling is mean_sound, which needs tokens that hold all bins of some frames", place,
         "state `stated_facts[pooling]=mean_patches` or another");
  if (!bank) return;
  if (one_row && a.input_h != a.patch_h)
    fail(fmt::format("{} bins, but the model's tokens are of {}", a.input_h, a.patch_h), place,
         state_size(a));
  if (a.position_resize == PositionResize::cut && a.grid_w() > a.stored_grid_w)
    fail(fmt::format("{} frames, but the model has positions for {}", a.input_w,
                     a.stored_grid_w * a.stride_w),
         place,
         fmt::format("state a shorter length: `stated_facts[size]={}x{}`", a.patch_h,
                     a.stored_grid_w * a.stride_w));
}

void check(const NameReader& names, const Architecture& a) {
  const std::string& place = names.checkpoint().path();
  if (a.depth == 0 || a.width == 0 || a.heads == 0 || a.head_dim == 0 || a.mlp_hidden == 0)
    fail(fmt::format("impossible sizes: width {}, depth {}, heads {}, mlp {}", a.width, a.depth,
                     a.heads, a.mlp_hidden),
         place, "see `inspect`");
  if (a.input != InputKind::token_ids) {
    if (a.stored_grid_h == 0 || a.stored_grid_w == 0)
      fail(fmt::format("a position table of {}x{} patches", a.stored_grid_h, a.stored_grid_w),
           place, "the file is incomplete or of another architecture");
    constexpr size_t most = 1u << 20;  // of each before their product is taken
    if (a.patch_h == 0 || a.patch_w == 0 || a.stride_h == 0 || a.stride_w == 0 ||
        a.input_h < a.patch_h || a.input_w < a.patch_w)
      fail(fmt::format("an input of {}x{} does not hold patches of {}x{}", a.input_h, a.input_w,
                       a.patch_h, a.patch_w),
           place, state_size(a));
    if (a.input_h > most || a.input_w > most || a.tokens() > most)
      fail(fmt::format("an input of {}x{} is too large: at most {} patches of {}x{} can be run",
                       a.input_h, a.input_w, most, a.patch_h, a.patch_w),
           place, state_size(a));
    if (a.input == InputKind::image && (a.input_h % a.patch_h || a.input_w % a.patch_w))
      fail(fmt::format("the input size {}x{} is not a multiple of the patch {}x{}", a.input_h,
                       a.input_w, a.patch_h, a.patch_w),
           place, state_size(a));
    if ((a.pooling == Pooling::first || a.pooling == Pooling::mean_prefix) &&
        a.prefix_tokens == a.registers)
      fail(fmt::format("the model has no class token to pool (no {})",
                       printable(names.full("cls_token"))),
           place, "is the file complete? Then state `stated_facts[pooling]=mean_patches`");
    check_sound(names, a);
  } else if (a.pooling == Pooling::mean_prefix || a.pooling == Pooling::mean_patches ||
             a.pooling == Pooling::mean_sound || a.pooling == Pooling::attention) {
    fail(fmt::format("a text has no {}", a.pooling == Pooling::mean_prefix ? "prefix" : "patches"),
         place, "state `stated_facts[pooling]=first`, mean_all, mean_sqrt or max_all");
  }
  if (!(a.norm_epsilon >= 0 && a.norm_epsilon < 1))
    fail(fmt::format("a norm's epsilon of {} is impossible", a.norm_epsilon), place,
         "state it: `stated_facts[norm_epsilon]=1e-6`");
  if (a.pooling == Pooling::attention && (a.pool_heads == 0 || a.width % a.pool_heads))
    fail(a.pool_heads
             ? fmt::format("{} heads that pool do not make the width {}", a.pool_heads, a.width)
             : "pooling is attention, for which the model has no query",
         place, "state another one: `stated_facts[pooling]=mean_patches`");
  if (!a.relative_buckets && a.attention_width() != a.width)
    fail(fmt::format("{} heads of {} do not make the width {}", a.heads, a.head_dim, a.width),
         place, "state the right number: `stated_facts[heads]=N`");
  const size_t angles = a.input == InputKind::token_ids ? 2 : 4;  // of a line, of a plane
  if (a.rotary && a.head_dim % angles)
    fail(fmt::format("rotary positions need a head width divisible by {}, not {}", angles,
                     a.head_dim),
         place, "`stated_facts[heads]=N`");
}

}  // namespace

std::optional<std::pair<size_t, size_t>> stated_size(const NameReader& names, size_t bins) {
  const auto text = names.stated("size");
  if (const auto frames = names.stated("frames"); frames && bins) {
    if (text)
      fail("both `stated_facts[size]` and `stated_facts[frames]` tell a length",
           names.checkpoint().path(), "leave one of them out");
    return std::pair(bins, parse_size("frames", *frames));
  }
  if (!text) return {};
  const size_t x = text->find('x'), first = parse_size("size", text->substr(0, x));
  if (x != std::string::npos) return std::pair(first, parse_size("size", text->substr(x + 1)));
  return std::pair(bins ? bins : first, first);
}

void set_heads(const NameReader& names, Architecture& a, size_t otherwise) {
  if (const auto stated = names.stated("heads")) {
    a.heads = parse_size("heads", *stated);
    return;
  }
  for (const char* key :
       {"/num_attention_heads", "/model_args/num_heads", "/num_heads", "/n_heads"})
    if (const auto n = names.config_size(key)) {
      a.heads = *n;
      return;
    }
  if (otherwise) {
    a.heads = otherwise;
    return;
  }
  a.heads_assumed = true;
  for (const auto& [known, heads] :
       {std::pair<size_t, size_t>{1152, 16}, {1280, 16}, {1408, 16}, {1664, 16}})
    if (a.width == known) a.heads = heads;  // the huge and giant ViTs have wider heads than 64
  if (a.heads == 0 && a.width % 64 == 0) a.heads = a.width / 64;
  if (a.heads == 0)
    fail(fmt::format("a width of {} does not tell the number of heads", a.width),
         names.checkpoint().path(), "state it: `stated_facts[heads]=N`");
}

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
    if (a.registers && positions > a.registers && find_grid(names, a, positions - a.registers))
      fail(
          fmt::format("{} positions, of which {} would be those of the registers: expected patches "
                      "alone",
                      positions, a.registers),
          names.checkpoint().path(), "this variant is not among those that `models` lists");
    const bool one_more = !token.empty() && positions > 1 && find_grid(names, a, positions - 1);
    fail(fmt::format("{} patch positions do not form a square{}", positions,
                     one_more ? fmt::format(", but one less would: is the tensor {} missing?",
                                            printable(names.full(token)))
                              : ""),
         names.checkpoint().path(),
         (one_more ? "get the whole file; or, where it is whole, " : "") +
             state_rectangle(a, positions));
  }
  // Others show such a model the whole picture and leave out what is beyond the last patch.
  if (const auto size = config_input_size(names);
      size && !stated_size(names) && grid == grid_of(size, a, positions) &&
      (size->first % a.patch_h || size->second % a.patch_w))
    fail(fmt::format("config.json says an image size of {}x{}, expected a multiple of the patch "
                     "{}x{}",
                     size->first, size->second, a.patch_h, a.patch_w),
         names.checkpoint().path(),
         fmt::format("the model leaves out the edge of its pictures, which is not known here; to "
                     "run it at another size: `stated_facts[size]={}x{}`",
                     grid->first * a.patch_h, grid->second * a.patch_w));
  std::tie(a.stored_grid_h, a.stored_grid_w) = *grid;
  std::tie(a.input_h, a.input_w) =
      stated_size(names).value_or(std::pair(grid->first * a.patch_h, grid->second * a.patch_w));
}

void set_input(const NameReader& names, Architecture& a, size_t usual) {
  std::tie(a.input_h, a.input_w) =
      stated_size(names).value_or(config_input_size(names).value_or(std::pair(usual, usual)));
  if (a.patch_h == 0 || a.patch_w == 0) return;  // settle_facts() refuses it
  a.stored_grid_h = a.input_h / a.patch_h, a.stored_grid_w = a.input_w / a.patch_w;
}

void settle_facts(const NameReader& names, Architecture& a) {
  apply_stated(names, a);
  check(names, a);
}

}  // namespace fungi
