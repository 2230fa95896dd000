// SPDX-License-Identifier: Apache-2.0
// Gradients of all layers from one backward: those of torch autograd (tests/golden/make_layers.py)
// and, bit for bit, those of a backbone that was opened for one layer.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/base/random.h"
#include "tests/support/errors.h"
#include "tests/support/golden_family.h"

namespace fungi {
namespace {

using golden::Family;

std::vector<double> draws(uint32_t seed, size_t count) {
  TorchRandom random(seed);
  std::vector<double> out(count);
  for (double& value : out) value = random.uniform() * 2 - 1;
  return out;
}

Backbone opened(const Family& family, std::vector<std::string> layers, const std::string& layer,
                Pool& pool) {
  BackboneOptions options{.precision = Precision::f32, .layer = layer, .layers = std::move(layers)};
  options.stated_facts = family.stated_facts();
  return Backbone::open(family.checkpoint(), options, pool);
}

// M u, then v M, of the gradient M = [W | b] of one sample.
std::vector<double> sketch(const LayerGradient& g, size_t sample) {
  const size_t outputs = g.b.cols(), inputs = g.a.cols() + 1;
  const std::vector<double> u = draws(1, inputs), v = draws(2, outputs);
  std::vector<double> out(outputs + inputs, 0.0);
  for (size_t r = g.offsets[sample]; r < g.offsets[sample + 1]; ++r) {
    double au = u[inputs - 1], bv = 0;
    for (size_t x = 0; x + 1 < inputs; ++x) au += u[x] * g.a(r, x);
    for (size_t y = 0; y < outputs; ++y) bv += v[y] * g.b(r, y), out[y] += au * g.b(r, y);
    for (size_t x = 0; x < inputs; ++x)
      out[outputs + x] += bv * (x + 1 < inputs ? double(g.a(r, x)) : 1.0);
  }
  return out;
}

bool same(const Matrix<float>& x, const Matrix<float>& y) {
  return x.rows() == y.rows() && x.cols() == y.cols() &&
         std::equal(x.data(), x.data() + x.rows() * x.cols(), y.data());
}

class AllLayers : public testing::TestWithParam<std::string> {};

TEST_P(AllLayers, OfOneBackwardAreThoseOfAutogradAndOfEachAlone) {
  const Family family(GetParam());
  Pool pool(1);
  const Backbone backbone = opened(family, {"blocks.*.*"}, "none", pool);
  const size_t n = family.input.rows(), width = backbone.architecture().embedding_width;
  ASSERT_EQ(backbone.layers().size(), 4 * backbone.architecture().depth);
  const std::vector<float> seed = family.array("seed").floats();
  const std::vector<double> truth =
      golden::load(FUNGI_GOLDEN_DIR "/layers/" + GetParam() + ".npy").values;

  Workspace workspace;
  Matrix<float> embeddings(n, width);
  backbone.forward(family.inputs(), workspace, embeddings);
  std::vector<LayerGradient> gradients(backbone.layers().size());
  const View<const float> d_embeddings{seed.data(), n, width};
  backbone.backward(d_embeddings, workspace, gradients);
  size_t at = 0;
  for (size_t l = 0; l < gradients.size(); ++l) {
    const std::string name = backbone.layers()[l].name();
    for (size_t i = 0; i < n; ++i) {
      const std::vector<double> found = sketch(gradients[l], i);
      ASSERT_LE(at + found.size(), truth.size());
      EXPECT_LT(golden::relative_error(found.data(), truth.data() + at, found.size()), 1e-4)
          << name << ", sample " << i;
      at += found.size();
    }
    const Backbone alone = opened(family, {}, name, pool);
    Workspace own;
    Matrix<float> again(n, width);
    alone.forward(family.inputs(), own, again);
    EXPECT_TRUE(same(again, embeddings)) << name;
    LayerGradient one;
    alone.backward(d_embeddings, own, one);
    EXPECT_TRUE(same(one.a, gradients[l].a) && same(one.b, gradients[l].b)) << name;
    EXPECT_EQ(one.offsets, gradients[l].offsets) << name;
    EXPECT_EQ(one.bias, gradients[l].bias) << name;
  }
  EXPECT_EQ(at, truth.size());
}

INSTANTIATE_TEST_SUITE_P(, AllLayers, testing::Values("timm_vit", "bert", "hf_ast"));

TEST(Layers, PatternsNameThem) {
  const auto names = [](const std::vector<std::string>& patterns) {
    std::string text;
    for (const LayerId& id : parse_layers(patterns, 3)) text += id.name() + " ";
    return text;
  };
  EXPECT_EQ(names({"blocks.*.mlp.fc2"}), "blocks.0.mlp.fc2 blocks.1.mlp.fc2 blocks.2.mlp.fc2 ");
  EXPECT_EQ(names({"blocks.2.*", "blocks.-1.attn.proj"}),
            "blocks.2.attn.qkv blocks.2.attn.proj blocks.2.mlp.fc1 blocks.2.mlp.fc2 ");
  EXPECT_EQ(names({"blocks.1.mlp.fc1", "blocks.0.attn.proj", "blocks.1.mlp.fc1"}),
            "blocks.0.attn.proj blocks.1.mlp.fc1 ");
  EXPECT_EQ(parse_layers({"*"}, 3).size(), 12u);
  EXPECT_ERROR("names no layer", parse_layers({"blocks.*.mlp.fc3"}, 3));
  EXPECT_ERROR("names no layer", parse_layers({"blocks.7.*"}, 3));
  EXPECT_ERROR("outside", parse_layers({"blocks.7.mlp.fc2"}, 3));
  EXPECT_ERROR("stars", parse_layers({"********************.********x"}, 3));
}

TEST(Layers, EachWantsAGradient) {
  const Family family("timm_vit");
  Pool pool(1);
  const Backbone backbone =
      opened(family, {"blocks.2.attn.proj", "blocks.2.mlp.fc2"}, "none", pool);
  EXPECT_TRUE(backbone.can_record()) << "both stand behind the last attention";
  Workspace workspace;
  Matrix<float> e(family.input.rows(), backbone.architecture().embedding_width);
  backbone.forward(family.inputs(), workspace, e);
  LayerGradient one;
  EXPECT_ERROR("2 layers", backbone.backward(e, workspace, one));
}

}  // namespace
}  // namespace fungi
