// SPDX-License-Identifier: Apache-2.0
// iBOT from pictures to the layer's gradient: what the extractor gives without a projection,
// against complex steps through the mini ViT of SPEC 7.3 in double precision, hidden patches and
// the patch term included.
#include <gtest/gtest.h>

#include "fungi/feature/view_schedule.h"
#include "fungi/objective/ibot.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/objective/reference.h"
#include "tests/support/golden.h"
#include "tests/support/mini_vit.h"

namespace fungi {
namespace {

using mini::Model;
using mini::Vector;
using reference::Complex;

constexpr size_t kPatches = Model::tokens - 1, kStudents = 3, kGlobal = 2;
constexpr double kMaskRatio = 0.5, kPatchWeight = 3;

struct View {
  Vector pixels;
  mini::Hidden hidden;
};

// What a sample's losses look at: the student's crops, global ones with hidden patches, then the
// teacher's, whole.
std::vector<View> views_of(const Ibot& objective, const Image& image, const std::string& id,
                           uint64_t seed, const Vector& mask_token) {
  const Preprocess preprocess = evaluation_transform(mini::architecture(), Preset::native);
  std::vector<View> views;
  for (const ViewRequest& request : objective.views()) {
    ImageViews maker(request.plan, preprocess);
    maker.open(image, view_seed(seed, "ibot", id));
    for (size_t v = 0; v < maker.count(); ++v) {
      std::vector<float> pixels(maker.view_floats());
      maker.write(v, pixels);
      views.push_back({{pixels.begin(), pixels.end()}, {.token = mask_token}});
      if (request.gradient && v < kGlobal)
        views.back().hidden.patches =
            token_mask(seed, "ibot", fnv1a64(id), v, kPatches, kMaskRatio);
    }
  }
  return views;
}

// ibot.h in words of one precision: DINO's term on class tokens, the patch term on hidden patches.
template <class T>
T loss_of(const std::vector<NamedMatrix>& state, const std::vector<View>& views,
          const std::vector<mini::Rows<T>>& student,
          const std::vector<mini::Rows<double>>& teacher) {
  const auto head = [&](const std::string& role, const auto& x) {
    using namespace reference;
    return affine(rows_of(state_named(state, role + ".weight")),
                  rows_of(state_named(state, role + ".bias"))[0], unit(x));
  };
  mini::Rows<T> s;
  mini::Rows<double> t;
  for (const auto& tokens : student) s.push_back(head("student", tokens[0]));
  for (const auto& tokens : teacher) t.push_back(head("teacher", tokens[0]));
  T patch = 0;
  size_t hidden = 0;
  for (size_t v = 0; v < kGlobal; ++v)
    for (size_t p = 0; p < kPatches; ++p) {
      if (!views[v].hidden.patches[p]) continue;
      const mini::Rows<T> one{head("patch_student", student[v][1 + p])};
      patch += reference::dino(one, {head("patch_teacher", teacher[v][1 + p])}, 0.1, 0.07, false);
      ++hidden;
    }
  return reference::dino(s, t, 0.1, 0.07, false) + patch * kPatchWeight / double(hidden);
}

// ∂loss/∂[proj, proj bias] of the last block, of unit length.
Vector reference_gradient(const Model& m, const std::vector<NamedMatrix>& state,
                          const std::vector<View>& views) {
  const Vector &proj = m.blocks[1].proj, &bias = m.blocks[1].proj_bias;
  std::vector<mini::Rows<double>> teacher;
  for (size_t v = kStudents; v < views.size(); ++v)
    teacher.push_back(mini::run<double>(m, views[v].pixels, proj, bias));
  Vector gradient;
  for (size_t i = 0; i < Model::d; ++i)
    for (size_t j = 0; j <= Model::d; ++j) {
      auto w = mini::widen<Complex>(proj), c = mini::widen<Complex>(bias);
      (j < Model::d ? w[i * Model::d + j] : c[i]) += Complex(0, 1e-30);
      std::vector<mini::Rows<Complex>> student;
      for (size_t v = 0; v < kStudents; ++v)
        student.push_back(mini::run<Complex>(m, views[v].pixels, w, c, nullptr, views[v].hidden));
      gradient.push_back(loss_of(state, views, student, teacher).imag() / 1e-30);
    }
  return reference::unit(gradient);
}

TEST(IbotGradient, OfTwoSamplesWithAndWithoutAMaskToken) {
  const Model model;
  const test::Pictures pictures(2);
  Pool pool(1);
  for (const Vector& mask_token : {Vector{}, Vector{0.5, -1, 0.25, 0.75, -0.5, 1, -0.25, 0.125}}) {
    SCOPED_TRACE(mask_token.empty() ? "zeros for hidden patches" : "a mask token");
    Architecture a = mini::architecture();
    a.mask_token = !mask_token.empty();
    const Backbone backbone = Backbone::assemble(
        a, mini::Tensors(model, mask_token), {.precision = Precision::f32, .tokens = true}, pool);
    IbotParameters parameters;
    parameters.width = 12;
    parameters.views = ImageCrops{.local_crops = kStudents - kGlobal};
    parameters.mask_ratio = kMaskRatio;
    parameters.patch_weight = kPatchWeight;
    ExtractorOptions options;
    options.objectives = {};
    options.projection = ProjectionKind::none;
    const uint64_t seed = options.seed;
    options.own.push_back(std::make_unique<Ibot>(parameters, Model::d, Model::d, 3));
    Extractor extractor(backbone, std::move(options), pool);
    const StoreRows rows = extractor.extract(pictures, test::range(2));
    ASSERT_TRUE(rows.failures.empty());
    ASSERT_EQ(rows.blocks.size(), 2u);
    ASSERT_EQ(rows.blocks[1].cols(), Model::d * (Model::d + 1));
    const Ibot objective(parameters, Model::d, Model::d, 3);
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<View> views =
          views_of(objective, pictures.image(i), pictures.id(i), seed, mask_token);
      ASSERT_EQ(views.size(), kStudents + kGlobal);
      const Vector expected = reference_gradient(model, objective.state(), views);
      EXPECT_LT(golden::relative_error(rows.blocks[1].row(i), expected.data(), expected.size()),
                1e-4)
          << "sample " << i;
    }
  }
}

}  // namespace
}  // namespace fungi
