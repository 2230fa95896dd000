// SPDX-License-Identifier: Apache-2.0
// A text is alone: by itself, padded or not, in a batch with longer ones, on one thread or two, it
// has the same bytes, in every family, on every instruction set and in every precision. And padding
// is not computed.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/support/golden_family.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

using golden::Family;

std::vector<std::string> text_families() {
  std::vector<std::string> names;
  for (const std::string& name : golden::backbones())
    if (!Family(name).texts.empty()) names.push_back(name);
  return names;
}

struct Result {
  std::vector<float> embedding, a, b;
  bool operator==(const Result&) const = default;
};

std::vector<Result> run(const Backbone& backbone, const std::vector<Inputs::Text>& texts,
                        Workspace& workspace) {
  const size_t d = backbone.architecture().embedding_width;
  Matrix<float> e(texts.size(), d), seed(texts.size(), d);
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t j = 0; j < d; ++j) seed(i, j) = float(j % 7) - 3.0f;
  backbone.forward(Inputs::text(texts), workspace, e);
  LayerGradient g;
  backbone.backward(seed, workspace, g);
  std::vector<Result> results;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t first = g.offsets[i], last = g.offsets[i + 1];
    results.push_back({{e.row(i), e.row(i) + d},
                       {g.a.row(first), g.a.row(first) + (last - first) * g.a.cols()},
                       {g.b.row(first), g.b.row(first) + (last - first) * g.b.cols()}});
  }
  return results;
}

class TextInvariance : public testing::TestWithParam<std::tuple<std::string, Isa, Precision>> {};

TEST_P(TextInvariance, SameBytesInAnyBatchAndThread) {
  const auto& [name, isa, precision] = GetParam();
  const Family family(name);
  std::vector<std::vector<int32_t>> bare;  // without their padding
  for (size_t i = 0; i < family.ids.size(); ++i) {
    bare.emplace_back();
    for (size_t j = 0; j < family.ids[i].size(); ++j)
      if (family.masks[i][j]) bare.back().push_back(family.ids[i][j]);
  }
  std::vector<Inputs::Text> texts;
  for (size_t i = 0; i < 8; ++i) texts.push_back({bare[i % bare.size()], {}});
  Pool pool(2);
  for (const char* layer : {"blocks.-1.attn.proj", "blocks.0.mlp.fc1"}) {
    const Backbone backbone = Backbone::open(
        family.checkpoint(),
        {.isa = isa, .precision = precision, .layer = layer, .stated_facts = family.stated_facts()},
        pool);
    EXPECT_EQ(backbone.layout(family.inputs()).rows(),
              bare[0].size() + bare[1].size() + bare[2].size())
        << "padding has no rows";
    Workspace workspace;
    std::vector<Result> alone;
    for (const Inputs::Text& text : texts) alone.push_back(run(backbone, {text}, workspace)[0]);
    EXPECT_EQ(run(backbone, texts, workspace), alone);
    const std::vector<Result> padded = run(backbone, family.texts, workspace);
    for (size_t i = 0; i < padded.size(); ++i) EXPECT_EQ(padded[i], alone[i]) << "padded " << i;
    std::vector<Workspace> workspaces(2);
    pool.parallel_for(4, 1, [&](size_t i, size_t, unsigned worker) {
      const auto pair = run(backbone, {texts[2 * i], texts[2 * i + 1]}, workspaces[worker]);
      EXPECT_EQ(pair[1], alone[2 * i + 1]) << "with two threads";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    , TextInvariance,
    testing::Combine(testing::ValuesIn(text_families()), testing::ValuesIn(supported_isas()),
                     testing::Values(Precision::f32, Precision::bf16, Precision::int8)),
    [](const auto& p) {
      return std::get<0>(p.param) + "_" + to_string(std::get<1>(p.param)) + "_" +
             to_string(std::get<2>(p.param));
    });

}  // namespace
}  // namespace fungi
