// SPDX-License-Identifier: Apache-2.0
// Objectives whose views are smaller than the model's input, from pictures to rows: the gradient put
// together view by view, the same rows whatever runs beside them, what a store is told, and the
// preset that lives on them.
#include <gtest/gtest.h>

#include <algorithm>

#include "fungi/feature/extractor.h"
#include "fungi/feature/view_schedule.h"
#include "fungi/objective/factory.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

const std::string kDino = "dino:width=32,local_crops=3,local_size=16",
                  kSimclr = "simclr:width=16,negatives=3,stride_scale=2,patch_size=16",
                  kIbot = "ibot:width=16,local_crops=2,local_size=8",
                  kDeepCluster = "deepcluster:prototypes=4,local_size=8";

ExtractorOptions with(std::vector<std::string> objectives,
                      ProjectionKind projection = ProjectionKind::sign) {
  ExtractorOptions o;
  o.objectives = std::move(objectives);
  o.projection = projection;
  if (projection == ProjectionKind::sign) o.projection_rows = 20;
  return o;
}

// The gradient of one picture under one objective, [outputs, inputs + 1], with a forward and a
// backward pass for each view by itself.
std::vector<double> by_hand(const Backbone& backbone, const Objective& objective,
                            const Sample& sample, const std::string& id) {
  const Architecture& a = backbone.architecture();
  const ViewRequest request = objective.views().at(0);
  const auto modality = modality_for(a, Preset::native);
  const auto maker = modality->maker(request.plan);
  maker->open(sample, view_seed(42, request.draw, id));
  const size_t views = modality->views(request.plan), d = a.embedding_width;
  Matrix<float> embeddings(views, d), gradients(views, d);
  Workspace workspace;
  InputBuffer one;
  const auto run = [&](size_t v) {
    one.clear();
    maker->write(v, one);
    backbone.forward(one.inputs(), workspace, embeddings.view().slice(v, 1));
  };
  for (size_t v = 0; v < views; ++v) run(v);
  objective.loss_and_gradient({embeddings}, {gradients, {}});
  const size_t rows = backbone.layer_outputs(), cols = backbone.layer_inputs() + 1;
  std::vector<double> sum(rows * cols, 0.0);
  for (size_t v = 0; v < views; ++v) {
    run(v);
    LayerGradient g;
    backbone.backward(gradients.view().slice(v, 1), workspace, g);
    for (size_t r = 0; r < g.a.rows(); ++r)
      for (size_t y = 0; y < rows; ++y)
        for (size_t x = 0; x < cols; ++x)
          sum[y * cols + x] += double(g.b(r, y)) * (x + 1 < cols ? g.a(r, x) : 1.0f);
  }
  return sum;
}

double cosine(const float* row, const std::vector<double>& expected) {
  double inner = 0, one = 0, other = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    inner += row[i] * expected[i];
    one += double(row[i]) * row[i], other += expected[i] * expected[i];
  }
  return inner / std::sqrt(one * other);
}

TEST(SmallerViews, GradientViewByView) {
  Pool pool(2);
  const Backbone backbone = test::tiny_backbone(pool);
  const test::Pictures pictures(5);
  for (const std::string& specification : {kDino, kSimclr}) {
    SCOPED_TRACE(specification);
    Extractor extractor(backbone, with({specification}, ProjectionKind::none), pool);
    extractor.fit(pictures);
    const auto objective =
        make_objective(specification, {backbone.architecture().embedding_width, 48, 42});
    std::vector<NamedMatrix> state;  // under the objective's own names
    for (NamedMatrix& m : extractor.state()) {
      std::string name = m.name.substr(m.name.find('-') + 1);
      std::replace(name.begin(), name.end(), '-', '.');
      state.push_back({name, std::move(m.values)});
    }
    objective->restore(state);
    const StoreRows rows = extractor.extract(pictures, test::range(5));
    const std::vector<StoreBlock> blocks = extractor.blocks();
    ASSERT_EQ(rows.blocks.size(), 2u);
    for (size_t i = 0; i < 5; ++i) {
      const Sample sample = pictures.decode(i, {}, {});
      const auto expected = by_hand(backbone, *objective, sample, pictures.id(i));
      ASSERT_EQ(expected.size(), rows.blocks[1].cols());
      EXPECT_GT(cosine(rows.blocks[1].row(i), expected), 1 - 1e-9) << i;
    }
  }
}

TEST(SmallerViews, SameRowsWhateverRunsBesideThem) {
  Pool one(1), two(2);
  const Backbone backbone = Backbone::assemble(
      test::tiny(), RandomTensors(1), {.precision = Precision::f32, .tokens = true}, one);
  const test::Pictures pictures(7);
  const std::vector<std::string> all{"kl", kDino, kSimclr, kIbot, kDeepCluster};
  Extractor plain(backbone, with(all), one), threads(backbone, with(all), two);
  plain.fit(pictures), threads.fit(pictures);
  const StoreRows together = plain.extract(pictures, test::range(7)),
                  parallel = threads.extract(pictures, test::range(7));
  ASSERT_EQ(together.failures.size(), 0u);
  ASSERT_EQ(together.blocks.size(), 6u);
  for (size_t b = 0; b < 6; ++b)
    EXPECT_TRUE(test::same(together.blocks[b], parallel.blocks[b])) << b;
  for (size_t i = 7; i-- > 0;) {
    const size_t alone[] = {i};
    const StoreRows row = plain.extract(pictures, alone);
    for (size_t b = 0; b < 6; ++b)
      EXPECT_TRUE(std::equal(row.blocks[b].row(0), row.blocks[b].row(0) + row.blocks[b].cols(),
                             together.blocks[b].row(i)))
          << "block " << b << ", picture " << i;
  }
  // Another layer, for which nothing can be recorded: views are run twice.
  const Backbone deep = Backbone::assemble(
      test::tiny(), RandomTensors(1),
      {.precision = Precision::f32, .layer = "blocks.0.attn.qkv"}, one);
  Extractor extractor(deep, with({kDino, kSimclr}), two);
  extractor.fit(pictures);
  const StoreRows rows = extractor.extract(pictures, test::range(7));
  const size_t last[] = {6, 2};
  const StoreRows some = extractor.extract(pictures, last);
  for (size_t b = 0; b < 3; ++b)
    for (const auto& [from, to] : {std::pair<size_t, size_t>(0, 6), {1, 2}})
      EXPECT_TRUE(std::equal(some.blocks[b].row(from),
                             some.blocks[b].row(from) + some.blocks[b].cols(),
                             rows.blocks[b].row(to)))
          << b;
}

TEST(SmallerViews, StoresOfTheModelsOwnSizeAreAsBefore) {
  const auto has = [](const std::string& specification, const std::string& parameter) {
    const auto list = make_objective(specification, {8, 8, 1})->parameters();
    return std::any_of(list.begin(), list.end(),
                       [&](const Parameter& p) { return p.name == parameter; });
  };
  EXPECT_FALSE(has("dino", "local_size"));
  EXPECT_FALSE(has("dino:local_size=0", "local_size"));
  EXPECT_TRUE(has("dino:local_size=96", "local_size"));
  EXPECT_TRUE(has("deepcluster:local_size=96", "local_size"));
  EXPECT_FALSE(has("simclr", "patch_size"));
  EXPECT_TRUE(has("simclr:patch_size=112", "patch_size"));
}

TEST(SmallerViews, SizesThatTheModelCannotLookAt) {
  Pool pool(1);
  const Backbone backbone = test::tiny_backbone(pool);  // patches of 8, pictures of 24
  EXPECT_ERROR("multiple of the model's patch of 8 pixels, found 12",
               Extractor(backbone, with({"dino:local_size=12"}), pool));
  EXPECT_ERROR("at most the 24 pixels", Extractor(backbone, with({"dino:local_size=32"}), pool));
  EXPECT_ERROR("found 4", Extractor(backbone, with({"simclr:patch_size=4"}), pool));
  EXPECT_ERROR("there is no parameter 'local_size'",
               make_objective("kl:local_size=96", {8, 8, 1}));
  EXPECT_NO_THROW(Extractor(backbone, with({"dino:local_crops=0,local_size=12"}), pool))
      << "there is none of these crops";
}

// What a view costs follows from its size.
TEST(SmallerViews, CostInOperations) {
  const Architecture a = named_architecture("vit_base_patch16_224");
  const auto of = [&](const std::string& specification) {
    ViewSchedule schedule(modality_for(a, Preset::native));
    for (const ViewRequest& request : make_objective(specification, {768, 768, 1})->views())
      schedule.add(request);
    return schedule.forward_flops(a);
  };
  const double one = a.forward_flops(a.tokens());
  EXPECT_NEAR(of("dino") / one, 13, 1e-9);
  EXPECT_NEAR(of("simclr:patch_size=112") / one, 1 + 49 * 0.247, 0.3);
  EXPECT_NEAR(of("dino:local_size=96") / one, 3 + 10 * 0.182, 0.1);
}

TEST(FastPreset, IsInInt8WhereNothingElseIsStated) {
  ExtractorOptions options;
  EXPECT_EQ(backbone_for(options).precision, std::nullopt);
  options.preset = Preset::fast;
  EXPECT_EQ(backbone_for(options).precision, Precision::int8);
  EXPECT_EQ(backbone_for(options, {.precision = Precision::bf16}).precision, Precision::bf16);
  for (const Preset preset : kAllPresets) EXPECT_EQ(parse_preset(to_string(preset)), preset);
}

// Of every model, whatever it reads and into what patches it cuts that.
TEST(FastPreset, IsFittedToTheModel) {
  const auto local_size = [](size_t input, size_t patch) {
    const auto made = make_objective("dino", {.embedding_width = 8,
                                              .preset = Preset::fast,
                                              .input_size = input,
                                              .patch_size = patch});
    return std::get<ImageCrops>(made->views()[0].plan).local_size;
  };
  EXPECT_EQ(local_size(224, 16), 96u);
  EXPECT_EQ(local_size(224, 14), 98u);
  EXPECT_EQ(local_size(518, 14), 224u);
  EXPECT_EQ(local_size(384, 16), 160u);
  EXPECT_EQ(local_size(48, 16), 16u);
  EXPECT_EQ(local_size(24, 8), 8u);
  EXPECT_EQ(local_size(24, 24), 24u);
  Pool pool(1);
  ExtractorOptions options = with({"kl", "dino:width=32", "simclr:width=16,negatives=3"});
  options.preset = Preset::fast;
  Extractor extractor(test::tiny_backbone(pool), std::move(options), pool);
  const test::Pictures pictures(3);
  extractor.fit(pictures);
  EXPECT_EQ(extractor.extract(pictures, test::range(3)).failures.size(), 0u);
}

// Fewer and smaller views, and otherwise what `native` has.
TEST(FastPreset, DiffersFromNativeInItsViewsAlone) {
  for (const SampleKind kind : {SampleKind::image, SampleKind::text, SampleKind::sound})
    for (const std::string& name : objective_names(kind)) {
      const auto native = default_parameters(name, Preset::native, kind),
                 fast = default_parameters(name, Preset::fast, kind);
      ASSERT_EQ(native.size(), fast.size());
      for (size_t i = 0; i < native.size(); ++i) {
        const bool of_views = native[i].name == "local_crops" || native[i].name == "local_size" ||
                              native[i].name == "stride_scale" || native[i].name == "patch_size";
        if (!of_views || kind != SampleKind::image) {
          EXPECT_EQ(native[i].value, fast[i].value) << name << " " << native[i].name;
        }
      }
    }
  const Architecture a = named_architecture("vit_base_patch16_224");
  const auto cost = [&](Preset preset) {
    ViewSchedule schedule(modality_for(a, preset));
    for (const char* name : {"kl", "dino", "simclr"})
      for (const ViewRequest& r : make_objective(name, {768, 768, 42, preset})->views())
        schedule.add(r);
    return schedule.forward_flops(a);
  };
  EXPECT_LT(cost(Preset::fast) * 2, cost(Preset::native));
}

}  // namespace
}  // namespace fungi
