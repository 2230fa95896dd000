// SPDX-License-Identifier: Apache-2.0
// Inner products of whole gradients against gradients formed in double precision, both ways, for
// any company and any threads.
#include "fungi/retrieve/gradient_products.h"

#include <gtest/gtest.h>

#include "tests/support/factor_store.h"

namespace fungi {
namespace {

using Way = GradientProducts::Way;

struct Made {
  std::vector<Matrix<float>> b, a;
  std::vector<GradientFactors> factors;
};

// Gradients of 0 to `terms` terms; offset keeps products from cancelling, as they do not for real
// features.
Made make(const LayerShape& layer, size_t n, size_t terms, uint64_t seed) {
  Made m;
  for (size_t i = 0; i < n; ++i) {
    const size_t used = i % 7 == 6 ? i % (terms + 1) : terms;
    const RandomStream random(seed, "products", i);
    Matrix<float> b(used, layer.outputs), a(used, layer.inputs);
    for (size_t j = 0; j < used * layer.outputs; ++j) b.data()[j] = float(random.uniform(j) - 0.4);
    for (size_t j = 0; j < used * layer.inputs; ++j)
      a.data()[j] = float(random.uniform(1000000 + j) - 0.4);
    m.b.push_back(std::move(b));
    m.a.push_back(std::move(a));
  }
  for (size_t i = 0; i < n; ++i) m.factors.push_back({m.b[i], m.a[i]});
  return m;
}

TEST(GradientProducts, AreThoseOfTheFormedGradients) {
  Pool pool(2);
  for (const bool bias : {true, false}) {
    for (const auto& [layer, x_terms, y_terms] :
         std::vector<std::tuple<LayerShape, size_t, size_t>>{{{6, 10, bias}, 1, 1},
                                                             {{33, 65, bias}, 3, 5},
                                                             {{50, 300, bias}, 12, 12},
                                                             {{16, 16, bias}, 49, 2}}) {
      const Made x = make(layer, 9, x_terms, 1), y = make(layer, 75, y_terms, 2);
      for (const Way way : {Way::factors, Way::gradients}) {
        const GradientProducts products(layer, x_terms, y_terms, way);
        Matrix<double> out(9, 75);
        products.multiply(x.factors, y.factors, out, pool);
        const std::vector<double> squares = products.squares(x.factors, pool);
        for (size_t i = 0; i < 9; ++i) {
          const std::vector<double> g = test::dense_gradient(x.b[i], x.a[i], bias);
          EXPECT_NEAR(squares[i], test::dot(g, g), 2e-6 * test::dot(g, g));
          for (size_t j = 0; j < 75; ++j) {
            const std::vector<double> h = test::dense_gradient(y.b[j], y.a[j], bias);
            EXPECT_NEAR(out(i, j), test::dot(g, h),
                        2e-6 * std::sqrt(test::dot(g, g) * test::dot(h, h)))
                << layer.outputs << " way " << int(way) << " " << i << " " << j;
          }
        }
      }
    }
  }
}

TEST(GradientProducts, DependOnThePairAlone) {
  const LayerShape layer{40, 150, true};
  const Made x = make(layer, 70, 4, 1), y = make(layer, 131, 6, 2);
  for (const Way way : {Way::factors, Way::gradients}) {
    const GradientProducts products(layer, 4, 6, way);
    Pool one(1), three(3);
    Matrix<double> all(70, 131), threaded(70, 131);
    products.multiply(x.factors, y.factors, all, one);
    products.multiply(x.factors, y.factors, threaded, three);
    EXPECT_TRUE(std::equal(all.data(), all.data() + 70 * 131, threaded.data()));
    for (const auto& [row, rows, column, columns] : std::vector<std::array<size_t, 4>>{
             {0, 1, 0, 1}, {69, 1, 130, 1}, {3, 50, 17, 99}, {33, 5, 64, 2}}) {
      Matrix<double> part(rows, columns);
      products.multiply(std::span(x.factors).subspan(row, rows),
                        std::span(y.factors).subspan(column, columns), part, three);
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j)
          EXPECT_EQ(part(i, j), all(row + i, column + j)) << "way " << int(way);
    }
    Matrix<double> self(70, 70);
    products.multiply(x.factors, x.factors, self, three);
    const std::vector<double> squares = products.squares(x.factors, three);
    for (size_t i = 0; i < 70; ++i)
      EXPECT_EQ(self(i, i), squares[i]) << "a gradient has similarity 1 to itself";
  }
}

TEST(GradientProducts, TakeTheCheaperWay) {
  const LayerShape base{768, 768, true}, tiny{192, 192, true};
  EXPECT_EQ(GradientProducts(base, 1, 1).way(), Way::factors);
  EXPECT_EQ(GradientProducts(base, 12, 12).way(), Way::factors);
  EXPECT_EQ(GradientProducts(base, 49, 49).way(), Way::gradients);
  EXPECT_EQ(GradientProducts(tiny, 12, 12).way(), Way::gradients);
  EXPECT_EQ(GradientProducts(tiny, 1, 12).way(), Way::factors);
}

}  // namespace
}  // namespace fungi
