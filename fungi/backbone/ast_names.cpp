// SPDX-License-Identifier: Apache-2.0
// AST and SSAST as their authors publish them (SPEC 4.3): a DeiT in timm's names over filter banks
// of 128 bins, whose patches overlap. Strides and length stand in no tensor.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr size_t kBins = 128, kStrides[] = {10, 12, 14, 16}, kFrames[] = {1024, 512, 128};

// Beside the network.
std::string above(const NameReader& names) {
  std::string folder = names.full("");
  if (folder.ends_with("v.")) folder.resize(folder.size() - 2);
  return folder;
}

[[noreturn]] void refuse_positions(const NameReader& names, const Architecture& a,
                                   size_t positions) {
  fail(fmt::format("{} positions of patches of {}x{}", positions, a.patch_h, a.patch_w),
       names.checkpoint().path(), "a table for 128 bins was expected");
}

// Pre-trained on patches side by side; run on patches that overlap, as its authors fine-tune it.
void set_ssast(const NameReader& names, Architecture& a, size_t positions) {
  a.dialect = "ssast";
  if (!names.checkpoint().find(above(names) + "p_input_tdim"))
    refuse_missing(names, above(names) + "p_input_tdim");
  const bool by_frames = a.patch_h == kBins && a.patch_w < kBins;
  if (a.patch_h != a.patch_w && !by_frames)
    fail(fmt::format("expected square patches, or of all 128 bins, found {}x{}", a.patch_h,
                     a.patch_w),
         names.checkpoint().path(), "this variant is not among those that `models` lists");
  if (a.patch_h == 0 || a.patch_w == 0 || a.patch_h > kBins || positions == 0)
    refuse_positions(names, a, positions);
  a.stored_grid_h = kBins / a.patch_h;
  a.stored_grid_w = positions / a.stored_grid_h;
  if (a.stored_grid_h * a.stored_grid_w != positions)
    fail(fmt::format("{} positions do not fit {} rows of bins", positions, a.stored_grid_h),
         names.checkpoint().path(), "a table for 128 bins was expected");
  a.stride_h = a.stride_w = std::min<size_t>(a.patch_h, 10);
  if (by_frames) a.stride_h = kBins, a.stride_w = 1;
}

size_t steps(size_t length, size_t patch, size_t stride) { return (length - patch) / stride + 1; }

// Whether the table is one for so many frames in patches at one of the strides, which is then set.
bool fits(Architecture& a, size_t frames, size_t positions) {
  if (frames < a.patch_w) return false;
  for (const size_t stride : kStrides) {
    const size_t h = steps(kBins, a.patch_h, stride), w = steps(frames, a.patch_w, stride);
    if (h * w != positions) continue;
    a.stride_h = a.stride_w = stride;
    a.stored_grid_h = h, a.stored_grid_w = w, a.input_w = frames;
    return true;
  }
  return false;
}

// A length that the table may be for; nothing else tells it.
std::string state_length(const Architecture& a, size_t positions) {
  for (const size_t stride : kStrides)
    if (const size_t h = steps(kBins, a.patch_h, stride); positions % h == 0)
      return fmt::format(
          "state the length that it was trained for; every {} bins and frames it would be "
          "`stated_facts[size]={}x{}`",
          stride, kBins, a.patch_w + stride * (positions / h - 1));
  return "this variant is not among those that `models` lists";
}

// Trained on patches that overlap (also SSAST, once fine-tuned): the table has the grid of the run.
void set_ast(const NameReader& names, Architecture& a, size_t positions) {
  a.dialect = "ast";
  if (a.patch_h != a.patch_w || a.patch_h == 0 || a.patch_h > kBins || positions == 0)
    refuse_positions(names, a, positions);
  for (const size_t frames : kFrames)
    if (fits(a, frames, positions)) return;
  if (const auto size = stated_size(names, kBins);
      size && size->first == kBins && fits(a, size->second, positions))
    return;
  fail(fmt::format("{} positions of patches, expected those of {} frames of 128 bins in patches of "
                   "{}x{} every {}",
                   positions, fmt::join(kFrames, ", "), a.patch_h, a.patch_w,
                   fmt::join(kStrides, ", ")),
       names.checkpoint().path(), state_length(a, positions));
}

}  // namespace

// What SSAST leaves beside the network in its pre-trained files alone.
bool is_pretrained_ssast(const NameReader& names) {
  for (const char* sign : {"p_input_tdim", "p_input_fdim", "mask_embed"})
    if (names.checkpoint().find(above(names) + sign)) return true;
  return false;
}

void set_sound(const NameReader& names, Architecture& a) {
  a.family = "ast", a.input = InputKind::filter_bank;
  a.position_resize = PositionResize::cut_bilinear;
  set_front_end(a, ast_front_end(), "assumed: AudioSet's mean and std", true);
  for (const char* token : {"cls_token", "dist_token"}) names.count(token);  // else missing
  const size_t rows = names.count("pos_embed") / a.width, plain = a.prefix_tokens - a.registers;
  a.input_h = kBins, a.input_w = kFrames[0];
  (is_pretrained_ssast(names) ? set_ssast : set_ast)(names, a, rows > plain ? rows - plain : 0);
}

}  // namespace fungi
