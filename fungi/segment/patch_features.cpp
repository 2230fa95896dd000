// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/patch_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/segment/patch_loss.h"

namespace fungi {

struct PatchScratch::State {
  Workspace workspace;
  Matrix<float> embeddings, d_embeddings, tokens, d_tokens, rows;
  LayerGradient gradient;
  Pool alone{1};  // what takes a pool runs on the caller's thread
};

PatchScratch::PatchScratch() : state_(std::make_unique<State>()) {}
PatchScratch::PatchScratch(PatchScratch&&) noexcept = default;
PatchScratch& PatchScratch::operator=(PatchScratch&&) noexcept = default;
PatchScratch::~PatchScratch() = default;

const Stages& PatchScratch::stages() const { return state_->workspace.stages; }

struct PatchFeatures::State {
  Backbone backbone;
  PatchFeatureOptions options;
  std::unique_ptr<PatchLoss> loss;  // none: the embedding alone
  std::unique_ptr<Projection> projection;

  // Runs the model; tokens of all pictures are then in scratch.tokens.
  TokenLayout forward(View<const float> pixels, PatchScratch::State& scratch) const;
  // Projected gradients of the patches of picture i, not normalised.
  void project(size_t i, const TokenLayout& layout, PatchScratch::State& scratch) const;
};

namespace {

void check_shape(const char* what, size_t rows, size_t cols, size_t wanted_rows,
                 size_t wanted_cols) {
  if (rows != wanted_rows || cols != wanted_cols)
    fail(fmt::format("expected {} x {} numbers, found {} x {}", wanted_rows, wanted_cols, rows,
                     cols),
         what, "see patch_features.h");
}

// A matrix of at least that size; what it held is gone.
void ensure(Matrix<float>& matrix, size_t rows, size_t cols) {
  if (matrix.rows() < rows || matrix.cols() != cols) matrix = Matrix<float>(rows, cols);
}

void check_finite(View<const float> tokens, size_t first, size_t count) {
  for (size_t t = first; t < first + count; ++t)
    for (size_t j = 0; j < tokens.cols; ++j)
      if (!std::isfinite(tokens(t, j)))
        fail("the model gives numbers that are not finite", "patch features",
             "are the weights whole, and are the pixels normalised?");
}

}  // namespace

BackboneOptions patch_backbone(const PatchFeatureOptions& options, BackboneOptions backbone) {
  const std::string size = fmt::format("{}x{}", options.height, options.width);
  if (const auto stated = backbone.stated_facts.find("size");
      stated != backbone.stated_facts.end() && stated->second != size)
    fail(fmt::format("an input size of {} is stated, but pictures of {} are wanted", stated->second,
                     size),
         "`stated_facts[size]`", "choose the size of the pictures instead");
  backbone.stated_facts["size"] = size;
  backbone.tokens = true;
  if (options.objective.empty()) backbone.layer = "none";
  backbone.mha_input_as_activation |= options.preset == Preset::paper;
  backbone.clip_with_gelu |= options.preset == Preset::paper;
  return backbone;
}

namespace {

[[noreturn]] void fail_sort() {
  fail("a model of pictures is needed", "patch features", "give a vision transformer");
}

// What would otherwise be said of a size that nobody stated. Of files that do not open without one,
// Backbone::open() tells more.
void check_model(const std::filesystem::path& model, const PatchFeatureOptions& options,
                 StatedFacts facts) {
  facts.erase("size");
  Architecture a;
  try {
    a = read_architecture(Checkpoint::open(model), facts);
  } catch (const Error&) {
    return;
  }
  if (a.input != InputKind::image) fail_sort();
  const size_t h = options.height / a.patch_h * a.patch_h,
               w = options.width / a.patch_w * a.patch_w;
  if (h == options.height && w == options.width) return;
  fail(fmt::format("pictures of {}x{} cannot be cut into patches of {}x{}", options.height,
                   options.width, a.patch_h, a.patch_w),
       model.string(),
       fmt::format("choose {}x{}, or {}x{}", std::max(h, a.patch_h), std::max(w, a.patch_w),
                   h + a.patch_h, w + a.patch_w));
}

}  // namespace

PatchFeatures PatchFeatures::open(const std::filesystem::path& model, PatchFeatureOptions options,
                                  Pool& pool, BackboneOptions backbone) {
  check_model(model, options, backbone.stated_facts);
  const BackboneOptions wanted = patch_backbone(options, std::move(backbone));
  return PatchFeatures(Backbone::open(model, wanted, pool), std::move(options));
}

PatchFeatures::PatchFeatures(Backbone backbone, PatchFeatureOptions options)
    : state_(std::make_unique<State>(State{std::move(backbone), std::move(options)})) {
  State& s = *state_;
  const Architecture& a = s.backbone.architecture();
  const char* place = "patch features";
  if (a.input != InputKind::image || a.channels != 3) fail_sort();
  if (a.input_h != s.options.height || a.input_w != s.options.width || !s.backbone.options().tokens)
    fail("the model was opened for something else", place,
         "use PatchFeatures::open() or patch_backbone(options)");
  if (s.options.objective.empty()) return;
  if (!s.backbone.layer())
    fail("gradients are wanted, but the model was opened without a layer", place,
         "use PatchFeatures::open() or patch_backbone(options)");
  s.loss = make_patch_loss(s.options.objective, {.token_width = a.width,
                                                 .prefix = a.prefix_tokens,
                                                 .registers = a.registers,
                                                 .patches = a.patches(),
                                                 .seed = s.options.seed,
                                                 .preset = s.options.preset});
  s.loss->restore(s.options.given);
  ProjectionOptions p;
  p.kind = s.options.projection;
  p.rows = s.options.projection_rows ? s.options.projection_rows : a.width;
  p.seed = s.options.projection_seed.value_or(s.options.seed);
  p.matrix = std::move(s.options.projection_matrix);
  s.projection = Projection::make(
      std::move(p),
      {s.backbone.layer_outputs(), s.backbone.layer_inputs(), s.backbone.layer_bias()});
}

PatchFeatures::PatchFeatures(PatchFeatures&&) noexcept = default;
PatchFeatures& PatchFeatures::operator=(PatchFeatures&&) noexcept = default;
PatchFeatures::~PatchFeatures() = default;

const Backbone& PatchFeatures::backbone() const { return state_->backbone; }
const PatchFeatureOptions& PatchFeatures::options() const { return state_->options; }

std::vector<Parameter> PatchFeatures::parameters() const {
  return state_->loss ? state_->loss->parameters() : std::vector<Parameter>{};
}

size_t PatchFeatures::grid_h() const { return state_->backbone.architecture().grid_h(); }
size_t PatchFeatures::grid_w() const { return state_->backbone.architecture().grid_w(); }
size_t PatchFeatures::patch_h() const { return state_->backbone.architecture().patch_h; }
size_t PatchFeatures::patch_w() const { return state_->backbone.architecture().patch_w; }
size_t PatchFeatures::embedding_width() const { return state_->backbone.architecture().width; }

size_t PatchFeatures::width() const {
  return embedding_width() + (state_->projection ? state_->projection->rows() : 0);
}

size_t PatchFeatures::pixel_count() const {
  return 3 * state_->options.height * state_->options.width;
}

PictureViews PatchFeatures::views() const {
  const State& s = *state_;
  const Preprocess& own = s.backbone.architecture().preprocess.transform;
  if (!follows_reference(s.options.preset))
    return PictureViews(s.options.height, s.options.width, own.mean, own.std);
  // DEVIATION: the paper's code has ImageNet's statistics for every model, and 0.255 for 0.225.
  std::array<float, 3> std = kImageNetStd;
  std[2] = 0.255f;
  return PictureViews(s.options.height, s.options.width, kImageNetMean, std);
}

bool PatchFeatures::wants_support() const { return state_->loss && state_->loss->support_rows(); }
size_t PatchFeatures::support_rows() const {
  return state_->loss ? state_->loss->support_rows() : 0;
}

void PatchFeatures::set_support(Matrix<float> unit_rows, Pool& pool) {
  if (!wants_support()) fail("these features look for no neighbours", "support", "leave it out");
  if (unit_rows.cols() != embedding_width())
    fail(fmt::format("expected tokens of width {}, found {}", embedding_width(), unit_rows.cols()),
         "support", "embed() gives such rows");
  state_->loss->set_support(std::move(unit_rows), pool);
}

View<const float> PatchFeatures::support() const {
  return state_->loss ? state_->loss->support() : View<const float>();
}

std::vector<NamedMatrix> PatchFeatures::state() const {
  return state_->loss ? state_->loss->state() : std::vector<NamedMatrix>{};
}

TokenLayout PatchFeatures::State::forward(View<const float> pixels,
                                          PatchScratch::State& scratch) const {
  const Architecture& a = backbone.architecture();
  const Inputs inputs = Inputs::images(pixels);
  TokenLayout layout = backbone.layout(inputs);
  ensure(scratch.embeddings, pixels.rows, a.embedding_width);
  ensure(scratch.tokens, layout.rows(), a.width);
  const View<float> tokens = scratch.tokens.view().slice(0, layout.rows());
  backbone.forward(inputs, scratch.workspace, scratch.embeddings.view().slice(0, pixels.rows),
                   tokens);
  return layout;
}

void PatchFeatures::State::project(size_t i, const TokenLayout& layout,
                                   PatchScratch::State& scratch) const {
  const Stages::Scope scope(scratch.workspace.stages, "projection");
  const size_t first = layout.first(i), count = layout.own(i);
  ensure(scratch.rows, count, projection->rows());
  projection->project_pairs(
      scratch.gradient.b.view().slice(first, count), scratch.gradient.a.view().slice(first, count),
      backbone.kernel().precision, scratch.rows.view().slice(0, count), scratch.alone);
}

void PatchFeatures::embed(View<const float> pixels, PatchScratch& scratch_of,
                          View<float> rows) const {
  const State& s = *state_;
  PatchScratch::State& scratch = *scratch_of.state_;
  const size_t d = embedding_width(), most = s.backbone.preferred_batch();
  check_shape("pixels", pixels.rows, pixels.cols, pixels.rows, pixel_count());
  check_shape("rows", rows.rows, rows.cols, pixels.rows * patches(), d);
  for (size_t begin = 0; begin < pixels.rows; begin += most) {
    const size_t count = std::min(most, pixels.rows - begin);
    const TokenLayout layout = s.forward(pixels.slice(begin, count), scratch);
    for (size_t i = 0; i < count; ++i) {
      const View<const float> own = scratch.tokens.view().slice(layout.first(i), patches());
      check_finite(own, 0, own.rows);
      normalise_rows(own, rows.slice((begin + i) * patches(), patches()));
    }
  }
}

void PatchFeatures::features(View<const float> pixels, std::span<const std::string> ids,
                             PatchScratch& scratch_of, View<float> rows) const {
  const State& s = *state_;
  if (!s.loss) return embed(pixels, scratch_of, rows);
  if (wants_support() && support().rows == 0)
    fail("the support is missing: there is nothing to take negatives from", "patch features",
         "call set_support() first");
  PatchScratch::State& scratch = *scratch_of.state_;
  const size_t d = embedding_width(), most = s.backbone.preferred_batch();
  check_shape("pixels", pixels.rows, pixels.cols, ids.size(), pixel_count());
  check_shape("rows", rows.rows, rows.cols, pixels.rows * patches(), width());
  for (size_t begin = 0; begin < pixels.rows; begin += most) {
    const size_t count = std::min(most, pixels.rows - begin);
    const TokenLayout layout = s.forward(pixels.slice(begin, count), scratch);
    const View<const float> tokens = scratch.tokens.view().slice(0, layout.rows());
    check_finite(tokens, 0, tokens.rows);
    ensure(scratch.d_embeddings, count, s.backbone.architecture().embedding_width);  // stays zero
    ensure(scratch.d_tokens, layout.rows(), d);
    for (size_t i = 0; i < count; ++i) {
      const size_t first = layout.offsets[i], t = layout.offsets[i + 1] - first;
      s.loss->gradient(tokens.slice(first, t), ids[begin + i], scratch.workspace.stages,
                       scratch.alone, scratch.d_tokens.view().slice(first, t));
    }
    s.backbone.backward(scratch.d_embeddings.view().slice(0, count), scratch.workspace,
                        scratch.gradient, scratch.d_tokens.view().slice(0, layout.rows()));
    for (size_t i = 0; i < count; ++i) {
      s.project(i, layout, scratch);
      const Stages::Scope scope(scratch.workspace.stages, "unit");
      const View<float> out = rows.slice((begin + i) * patches(), patches());
      normalise_rows(tokens.slice(layout.first(i), patches()), {out.data, out.rows, d, out.stride});
      for (size_t t = 0; t < patches(); ++t) {
        const std::span<float> y(scratch.rows.row(t), s.projection->rows());
        normalise(y);
        std::copy(y.begin(), y.end(), out.row(t) + d);
        normalise({out.row(t), width()});
      }
    }
  }
}

}  // namespace fungi
