// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/embed.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/position.h"
#include "fungi/backbone/sides.h"

namespace fungi {
namespace {

size_t patch_size(const Architecture& a) { return a.channels * a.patch_h * a.patch_w; }

// The patch at (gy, gx) as one row of elements, flattened as channel, row, column; then its rest. A
// filter bank comes as [time, bins] and is read transposed, as an image of bins × time with one
// channel.
void unfold(const Architecture& a, const kernel::Kernel& kernel, const float* pixels, size_t gy,
            size_t gx, std::vector<float>& line, std::byte* out) {
  const size_t y0 = gy * a.stride_h, x0 = gx * a.stride_w, width = a.patch_w;
  const size_t rest = patch_size(a) * kernel.element_size;
  for (size_t c = 0; c < a.channels; ++c)
    for (size_t y = y0; y < y0 + a.patch_h; ++y, out += width * kernel.element_size) {
      const float* from = pixels + (c * a.input_h + y) * a.input_w + x0;
      if (a.input == InputKind::filter_bank) {
        line.resize(width);
        for (size_t x = 0; x < width; ++x) line[x] = pixels[(x0 + x) * a.input_h + y];
        from = line.data();
      }
      write_input(kernel, width, from, out, out + rest);
    }
}

// Positions of the patches, from those of the file.
Matrix<float> on_grid(const Architecture& a, const Matrix<float>& stored) {
  if (!a.position_table) return Matrix<float>(a.patches(), a.width);
  return resize_positions(stored, a.stored_grid_h, a.stored_grid_w, a.grid_h(), a.grid_w(),
                          a.position_resize);
}

void add(const std::vector<float>& values, float* to) {
  for (size_t i = 0; i < values.size(); ++i) to[i] += values[i];
}

void project_patches(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
                     const Matrix<float>& positions, const float* pixels, Scratch& t, float* x,
                     size_t x_stride) {
  std::vector<float> line;
  const size_t columns = input_parts(kernel) * patch_size(a);
  t.patches.ensure(kernel, a.patches(), columns);
  const size_t needed = kernel.gemm_scratch(a.patches(), a.width, columns);
  if (t.kernel.bytes() < needed) t.kernel = Buffer(needed);
  for (size_t p = 0; p < a.patches(); ++p)
    unfold(a, kernel, pixels, p / a.grid_w(), p % a.grid_w(), line, t.patches.row(p));
  kernel::Epilogue out;
  out.bias = e.patch.bias_data();
  if (!e.patch_norm) out.residual = positions.data(), out.residual_stride = positions.stride();
  out.out = x, out.out_stride = x_stride;
  kernel.gemm(a.patches(), t.patches.row(0), t.patches.stride(), e.patch.forward, out,
              t.kernel.data());
  if (!e.patch_norm) return;
  kernel.norm(a.rms_norm, a.patches(), a.width, x, x_stride, e.patch_norm.weight.data(),
              e.patch_norm.beta(), a.norm_epsilon, x, x_stride, nullptr, 0);
  for (size_t p = 0; p < a.patches(); ++p)
    for (size_t j = 0; j < a.width; ++j) x[p * x_stride + j] += positions(p, j);
}

uint32_t side_of(const Inputs& inputs, size_t view) {
  return inputs.sides.empty() ? 0 : inputs.sides[view];
}

const PictureGrid& grid_of(const Architecture& a, const Embedding& e, uint32_t side,
                           PictureGrids& grids) {
  const auto known = grids.find(side);
  if (known != grids.end()) return known->second;
  PictureGrid grid{at_side(a, side), {}, {}};
  grid.positions = on_grid(grid.arch, e.stored_positions);
  if (a.rotary) grid.rotary = cosines_and_sines(rotary_angles(grid.arch));
  return grids.emplace(side, std::move(grid)).first->second;
}

void embed_patches(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
                   const Inputs& inputs, PictureGrids& grids, Scratch& t, Batch& batch,
                   Floats& x) {
  for (size_t i = 0; i < batch.samples; ++i) {
    const size_t first = batch.offsets[i];
    for (size_t p = 0; p < a.prefix_tokens; ++p)
      std::copy_n(e.prefix.row(p), a.width, x.row(first + p));
    float* patches = x.row(first + a.prefix_tokens);
    const uint32_t side = side_of(inputs, i);
    const PictureGrid* own = side ? &grid_of(a, e, side, grids) : nullptr;
    const Matrix<float>& positions = own ? own->positions : e.positions;
    if (own && a.rotary) batch.rotary.resize(batch.samples), batch.rotary[i] = &own->rotary;
    if (a.convolutions)
      convolve(a, kernel, e, inputs.pixels.row(i), t, patches, x.stride());
    else
      project_patches(own ? own->arch : a, kernel, e, positions, inputs.pixels.row(i), t, patches,
                      x.stride());
    if (!inputs.masked.data) continue;
    for (size_t p = 0; p < patches_at(a, side); ++p) {
      if (!inputs.masked(i, p)) continue;
      float* to = x.row(first + a.prefix_tokens + p);
      for (size_t j = 0; j < a.width; ++j)
        to[j] = (e.mask_token.empty() ? 0.0f : e.mask_token[j]) + positions(p, j);
    }
  }
}

// Rows that stand where patches would: behind the prefix, with the positions of patches.
void embed_given_patches(const Architecture& a, const Embedding& e, const Inputs& inputs,
                         const Batch& batch, Floats& x) {
  for (size_t i = 0; i < batch.samples; ++i) {
    const View<const float> given = inputs.embedded[i];
    float* to = x.row(batch.offsets[i]);
    for (size_t p = 0; p < a.prefix_tokens; ++p, to += x.stride())
      std::copy_n(e.prefix.row(p), a.width, to);
    for (size_t p = 0; p < a.patches(); ++p, to += x.stride())
      for (size_t c = 0; c < a.width; ++c) to[c] = given(p, c) + e.positions(p, c);
  }
}

// Which row of the position table each token gets. RoBERTa's count the tokens that are not padding,
// attended to or not; padding itself has the row of its id.
std::vector<size_t> word_positions(const Architecture& a, std::span<const int32_t> ids) {
  std::vector<size_t> positions(ids.size());
  size_t others = 0;
  for (size_t j = 0; j < ids.size(); ++j)
    positions[j] = !a.padding_id                      ? j
                   : ids[j] == int32_t(*a.padding_id) ? *a.padding_id
                                                      : *a.padding_id + ++others;
  return positions;
}

void place_word(const Architecture& a, const Embedding& e, const float* word, size_t position,
                float* to) {
  std::copy_n(word, a.words_width(), to);
  if (e.word_positions.empty()) return;
  for (size_t c = 0; c < a.words_width(); ++c) to[c] += e.word_positions(position, c);
}

void check_position(const Architecture& a, size_t position, size_t tokens,
                    const std::string& place) {
  if (a.max_positions && position >= a.max_positions)
    fail(fmt::format("{} tokens, but the model has {} positions", tokens,
                     a.max_positions - (a.padding_id ? *a.padding_id + 1 : 0)),
         place, "cut the text");
}

std::string place_of(size_t text) { return fmt::format("text {} of the batch", text); }

// Padding is left out instead of masked, so a text never depends on how long its neighbours are.
void embed_words(const Architecture& a, const Embedding& e, const Inputs& inputs,
                 const Batch& batch, Floats& x) {
  for (size_t i = 0; i < batch.samples; ++i) {
    const Inputs::Text& text = inputs.texts[i];
    const std::string place = place_of(i);
    const std::vector<size_t> positions = word_positions(a, text.ids);
    size_t row = batch.offsets[i], last = 0;  // the last token that was kept
    for (size_t j = 0; j < text.ids.size(); ++j) {
      if (!text.mask.empty() && !text.mask[j]) continue;
      if (text.ids[j] < 0 || size_t(text.ids[j]) >= a.vocabulary)
        fail(fmt::format("token id {} is outside the vocabulary of {}", text.ids[j], a.vocabulary),
             place, "use the tokeniser of this model");
      check_position(a, positions[j], text.ids.size(), place);
      if ((a.relative_buckets || a.rotary) && row > batch.offsets[i] && last + 1 != j)
        fail("the attended tokens have a gap; relative positions need one run of them", place,
             "pad at the ends only");
      last = j;
      place_word(a, e, e.words.row(size_t(text.ids[j])), positions[j], x.row(row++));
    }
  }
}

// Rows that stand where words would, each attended to.
void embed_given_words(const Architecture& a, const Embedding& e, const Inputs& inputs,
                       const Batch& batch, Floats& x) {
  const size_t first = a.padding_id ? *a.padding_id + 1 : 0;
  for (size_t i = 0; i < batch.samples; ++i) {
    const View<const float> given = inputs.embedded[i];
    check_position(a, first + given.rows - 1, given.rows, place_of(i));
    for (size_t j = 0; j < given.rows; ++j)
      place_word(a, e, given.row(j), first + j, x.row(batch.offsets[i] + j));
  }
}

// Words of their own width, in scratch.floats, to the width of the model.
void map_words(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e, size_t rows,
               Scratch& t, Floats& x) {
  t.in.ensure(kernel, rows, a.word_width);
  kernel.to_elements(rows, a.word_width, t.floats.row(0), t.floats.stride(), t.in.row(0),
                     t.in.stride());
  const size_t needed = kernel.gemm_scratch(rows, a.width, a.word_width);
  if (t.kernel.bytes() < needed) t.kernel = Buffer(needed);
  x.ensure(rows, a.width);
  kernel::Epilogue out;
  out.bias = e.word_map.bias_data();
  out.out = x.row(0), out.out_stride = x.stride();
  kernel.gemm(rows, t.in.row(0), t.in.stride(), e.word_map.forward, out, t.kernel.data());
}

size_t attended(const Inputs::Text& text, const std::string& place) {
  if (text.mask.empty()) return text.ids.size();
  if (text.mask.size() != text.ids.size())
    fail(fmt::format("{} ids but a mask of {}", text.ids.size(), text.mask.size()), place);
  return text.mask.size() - size_t(std::count(text.mask.begin(), text.mask.end(), 0));
}

// Of the tokens of one view that are its own, not the model's.
size_t own_tokens(const Architecture& a, const Inputs& inputs, size_t view) {
  const bool words = a.input == InputKind::token_ids;
  if (inputs.embedded.empty())
    return words ? attended(inputs.texts[view], place_of(view))
                 : patches_at(a, side_of(inputs, view));
  const View<const float> given = inputs.embedded[view];
  const size_t width = words ? a.words_width() : a.width;
  if (given.cols != width || (!words && given.rows != a.patches()))
    fail(fmt::format("expected embedded tokens [{}, {}], found [{}, {}]",
                     words ? "any number" : std::to_string(a.patches()), width, given.rows,
                     given.cols),
         fmt::format("view {} of the batch", view), "give one row of the model's width per token");
  return given.rows;
}

void check_sort(const Architecture& a, const Inputs& inputs) {
  const bool words = a.input == InputKind::token_ids;
  if (inputs.count() == 0) fail("no view was given", "backbone input");
  if (!inputs.embedded.empty()) {
    if (inputs.pixels.data || !inputs.texts.empty() || inputs.masked.data)
      fail("embedded tokens were given beside pixels, ids or a mask", "backbone input",
           "give views of one sort");
    return;
  }
  if (words) {
    if (inputs.pixels.data) fail("this backbone reads token ids, not pixels", "backbone input");
    if (inputs.masked.data)
      fail("words cannot be hidden by a mask", "backbone input", "give the id of the mask token");
    return;
  }
  if (!inputs.pixels.data) fail("this backbone reads pixels, not token ids", "backbone input");
  const size_t expected = a.channels * a.input_h * a.input_w;
  if (inputs.pixels.cols != expected)
    fail(fmt::format("a view has {} values, expected {} ({}x{}x{})", inputs.pixels.cols, expected,
                     a.channels, a.input_h, a.input_w),
         "backbone input", "prepare views at the backbone's input size");
  if (!inputs.frames.empty() && inputs.frames.size() != inputs.count())
    fail(fmt::format("{} views, but the frames of {}", inputs.count(), inputs.frames.size()),
         "backbone input", "one number of frames per view");
  if (!inputs.sides.empty() && inputs.sides.size() != inputs.count())
    fail(fmt::format("{} views, but the sides of {}", inputs.count(), inputs.sides.size()),
         "backbone input", "one side per view");
  for (const uint32_t side : inputs.sides) check_side(a, side, "backbone input");
  if (inputs.masked.data &&
      (inputs.masked.cols != a.patches() || inputs.masked.rows != inputs.count()))
    fail(fmt::format("the mask is {}x{}, expected {}x{}", inputs.masked.rows, inputs.masked.cols,
                     inputs.count(), a.patches()),
         "backbone input", "one byte per patch of every view");
}

}  // namespace

void write_input(const kernel::Kernel& kernel, size_t count, const float* from, std::byte* out,
                 std::byte* rest) {
  if (input_parts(kernel) == 2)
    kernel.split(count, from, out, rest);
  else
    kernel.to_elements(1, count, from, count, out, count);
}

Linear load_input_weights(const kernel::Kernel& kernel, View<const float> weight,
                          const std::vector<float>& bias) {
  const size_t d = weight.rows, size = weight.cols;
  Matrix<float> repeated(d, input_parts(kernel) * size);
  for (size_t i = 0; i < d; ++i)
    for (size_t part = 0; part < input_parts(kernel); ++part)
      std::copy_n(weight.row(i), size, repeated.row(i) + part * size);
  return slice_linear({kernel}, repeated, bias, 0, d);
}

Embedding load_embedding(const kernel::Kernel& kernel, const Tensors& tensors,
                         const Architecture& a) {
  Embedding e;
  e.norm = load_norm(tensors, "norm_pre");
  if (a.input == InputKind::token_ids) {
    e.words = tensors.matrix("words");
    e.word_positions = tensors.matrix("word_positions");
    const std::vector<float> type = tensors.vector("word_type");
    for (size_t i = 0; i < e.word_positions.rows(); ++i) add(type, e.word_positions.row(i));
    if (a.word_width) e.word_map = load_linear({kernel}, tensors, "word_map");
    return e;
  }
  if (a.convolutions)
    load_convolutions(kernel, tensors, e);
  else
    e.patch = load_input_weights(kernel, tensors.matrix("patch_embed.weight"),
                                 tensors.vector("patch_embed.bias"));
  e.patch_norm = load_norm(tensors, "patch_norm");
  e.stored_positions = tensors.matrix("pos_patches");
  e.positions = on_grid(a, e.stored_positions);
  e.prefix = Matrix<float>(a.prefix_tokens, a.width);
  float* to = e.prefix.data();
  for (const char* name : {"prefix", "registers"}) {
    const std::vector<float> own = tensors.vector(name);
    to = std::copy(own.begin(), own.end(), to);
  }
  add(tensors.vector("pos_prefix"), e.prefix.data());
  e.mask_token = tensors.vector("mask_token");
  return e;
}

TokenLayout token_layout(const Architecture& a, const Inputs& inputs) {
  check_sort(a, inputs);
  TokenLayout layout{{0}, a.input == InputKind::token_ids ? 0 : a.prefix_tokens};
  for (size_t i = 0; i < inputs.count(); ++i) {
    const size_t own = own_tokens(a, inputs, i);
    if (layout.prefix + own < std::max<size_t>(a.pooled_tokens(), 1))
      fail("no token is left", place_of(i), "give at least the special tokens");
    layout.offsets.push_back(layout.offsets.back() + layout.prefix + own);
  }
  return layout;
}

void embed(const Architecture& a, const kernel::Kernel& kernel, const Embedding& e,
           const Inputs& inputs, PictureGrids& grids, Scratch& scratch, Stages& stages,
           Batch& batch, Floats& x) {
  const Stages::Scope scope(stages, "embed");
  batch.samples = inputs.count();
  batch.offsets = token_layout(a, inputs).offsets;
  batch.rotary.clear();
  const bool words = a.input == InputKind::token_ids, given = !inputs.embedded.empty(),
             mapped = a.word_width > 0;
  Floats& first = mapped ? scratch.floats : x;
  const size_t rows = batch.rows(), width = words ? a.words_width() : a.width;
  first.ensure(rows, width);
  if (words)
    (given ? embed_given_words : embed_words)(a, e, inputs, batch, first);
  else if (given)
    embed_given_patches(a, e, inputs, batch, first);
  else
    embed_patches(a, kernel, e, inputs, grids, scratch, batch, first);
  if (a.norm_pre)
    kernel.norm(a.rms_norm, rows, width, first.row(0), first.stride(), e.norm.weight.data(),
                e.norm.beta(), a.norm_epsilon, first.row(0), first.stride(), nullptr, 0);
  if (mapped) map_words(a, kernel, e, rows, scratch, x);
}

}  // namespace fungi
