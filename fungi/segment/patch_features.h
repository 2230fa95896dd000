// SPDX-License-Identifier: Apache-2.0
// Dense features: one row per patch of a picture, its token beside the projected gradient that the
// patch alone has under a loss over all patches of the picture (SPEC 2.4, 10.1.1). Const once the
// support is set, and shared by threads, each with a PatchScratch of its own. The rows of a picture
// depend on the model, the options, the support, its pixels and its id alone.
//
//   PatchFeatures features = PatchFeatures::open(model, {.height = 512, .width = 512}, pool);
//   features.set_support(unit tokens of some training pictures);
//   PictureViews views = features.views();
//   views.whole(image, pixels.row(0));
//   features.features(pixels, ids, scratch, rows);
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/presets.h"
#include "fungi/projection/projection.h"
#include "fungi/segment/picture_views.h"

namespace fungi {

struct PatchFeatureOptions {
  size_t height = 512, width = 512;  // of a picture as the model sees it: multiples of its patch
  // name[:parameter=value,...] of patch_simclr (objective/patch_simclr.h), kl or dino, the latter
  // two with each patch for a sample; empty: the embedding alone.
  std::string objective = "patch_simclr";
  Preset preset = Preset::native;  // paper: neighbours scrambled, deviations of colour mistyped
  ProjectionKind projection = ProjectionKind::factored;
  size_t projection_rows = 0;  // 0: the width of a token
  uint64_t seed = 42;
  std::optional<uint64_t> projection_seed;  // default: seed
  Matrix<float> projection_matrix;          // for ProjectionKind::matrix
  std::vector<NamedMatrix> given;           // heads of the user's own, by the names of state()
};

// What changes while features are computed. One per thread.
class PatchScratch {
 public:
  PatchScratch();
  PatchScratch(PatchScratch&&) noexcept;
  PatchScratch& operator=(PatchScratch&&) noexcept;
  ~PatchScratch();

  const Stages& stages() const;  // time spent so far
  struct State;

 private:
  friend class PatchFeatures;
  std::unique_ptr<State> state_;
};

class PatchFeatures {
 public:
  // The model at that input size, as the objective wants it. `backbone` may state facts of the
  // model, a precision, an instruction set or another layer.
  static PatchFeatures open(const std::filesystem::path& model, PatchFeatureOptions options,
                            Pool& pool, BackboneOptions backbone = {});
  // The same with a model that was opened for it; see patch_backbone().
  PatchFeatures(Backbone backbone, PatchFeatureOptions options);
  PatchFeatures(PatchFeatures&&) noexcept;
  PatchFeatures& operator=(PatchFeatures&&) noexcept;
  ~PatchFeatures();

  const Backbone& backbone() const;
  const PatchFeatureOptions& options() const;
  std::vector<Parameter> parameters() const;  // of the objective
  size_t grid_h() const;
  size_t grid_w() const;
  size_t patches() const { return grid_h() * grid_w(); }
  size_t patch_h() const;
  size_t patch_w() const;
  size_t embedding_width() const;  // of a token
  size_t width() const;            // of a row of features()
  bool gradients() const { return width() > embedding_width(); }
  size_t pixel_count() const;  // 3 * height * width, numbers of a picture
  // How pictures become pixels: with the model's mean and deviation, or the paper's.
  PictureViews views() const;

  // Whether features() looks for neighbours among unit tokens of other pictures; then set_support()
  // comes first.
  bool wants_support() const;
  // How many rows are enough: more change nothing that can be measured and cost time.
  size_t support_rows() const;
  void set_support(Matrix<float> unit_rows, Pool& pool);
  View<const float> support() const;

  // Heads, as "patch_simclr-head0-weight".
  std::vector<NamedMatrix> state() const;

  // Unit patch tokens, [pictures * patches, embedding_width], of pixels [pictures, pixel_count].
  void embed(View<const float> pixels, PatchScratch& scratch, View<float> rows) const;
  // unit([unit token; unit projected gradient]), [pictures * patches, width]; without gradients as
  // embed(). The id of a picture seeds what is drawn for it. Who wants both need not run the model
  // twice: the first embedding_width() numbers of a row, normalised again, are those of embed() but
  // for their last bits.
  void features(View<const float> pixels, std::span<const std::string> ids, PatchScratch& scratch,
                View<float> rows) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How to open a backbone for that: with all tokens, at that input size, with the preset's
// deviations.
BackboneOptions patch_backbone(const PatchFeatureOptions& options, BackboneOptions backbone = {});

}  // namespace fungi
