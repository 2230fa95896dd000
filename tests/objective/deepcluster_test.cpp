// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.2, complex step of the loss as SPEC 2.5 writes it, a plain k-means in f64.
#include "fungi/objective/deepcluster.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;

std::vector<NamedMatrix> state_of(const Rows<double>& head, const Rows<double>& prototypes) {
  std::vector<NamedMatrix> state;
  state.push_back({"head.weight", matrix_of<float>(head)});
  state.push_back({"prototypes", matrix_of<float>(prototypes)});
  return state;
}

TEST(DeepCluster, SpecificationVector) {
  DeepClusterParameters parameters;
  parameters.prototype_sets = 2;
  parameters.views = ImageCrops{.global_crops = 2, .local_crops = 0};
  DeepCluster objective(parameters, 4, 1);
  const Rows<double> head = {{.3, -.2, .5, .1}, {-.4, .6, .2, -.1}, {.2, .1, -.3, .7}};
  objective.restore(state_of(head, {{.2, .1, .5},
                                    {-.3, .4, .1},
                                    {.5, -.2, .2},
                                    {.1, .1, -.6},
                                    {-.1, .3, .2},
                                    {.4, .4, -.1},
                                    {.2, -.5, .3},
                                    {0, .2, .1}}));
  EXPECT_EQ(objective.prototypes_used(), 4u);
  // Assignment crops that set 0 assigns to its prototype 2 and set 1 to its prototype 1, as the
  // vector asks.
  const Matrix<float> e = matrix_of<float>(
      {{.5, -1, .3, .8}, {1.2, .4, -.6, .1}, {.3, -.11, .34, .3}, {-.01, .31, .61, .11}});
  Matrix<float> g(4, 4);
  EXPECT_NEAR(objective.loss_and_gradient({e}, {g, {}}), 4.10448190352, 1e-5);
  expect_rows_near<float>(g,
                          {{-0.03687442472, -0.1989489927, -1.070184755, 0.1756795577},
                           {-0.4030953415, -0.05678192206, -0.9208384012, -0.4607586207},
                           {0, 0, 0, 0},
                           {0, 0, 0, 0}},
                          2e-6);
}

void expect_complex_step(size_t assignment_crops, double tau) {
  DeepClusterParameters parameters;
  parameters.width = 11;
  parameters.assignment_crops = assignment_crops;
  parameters.temperature = tau;
  DeepCluster objective(parameters, 19, 4);
  const Rows<double> head = random_rows(11, 19, 1), flat = random_rows(3 * 9, 11, 2, 0.3);
  objective.restore(state_of(head, flat));
  const size_t views = 8 + assignment_crops;
  const Rows<double> e = random_rows(views, 19, 3);
  std::vector<Rows<double>> sets;
  std::vector<size_t> assigned;
  Rows<double> unit_head;
  for (const auto& row : head) unit_head.push_back(unit(row));
  for (size_t h = 0; h < 3; ++h) {
    sets.emplace_back(flat.begin() + h * 9, flat.begin() + (h + 1) * 9);
    const std::vector<double> scores =
        affine(sets[h], {}, affine(unit_head, {}, e[8 + h % assignment_crops]));
    assigned.push_back(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  const auto loss_of = [&](const auto& x) {
    const std::decay_t<decltype(x)> crops(x.begin(), x.begin() + 8);
    return deepcluster(crops, head, sets, assigned, tau);
  };
  const Matrix<float> embeddings = matrix_of<float>(e);
  Matrix<float> g(views, 19);
  const double loss = objective.loss_and_gradient({embeddings}, {g, {}});
  EXPECT_NEAR(loss, loss_of(e), 1e-5 * loss);
  expect_rows_near<float>(g, gradient(e, [&](const Rows<Complex>& x) { return loss_of(x); }), 1e-5);
}

TEST(DeepCluster, EmbeddingGradientMatchesTheComplexStep) {
  for (const auto& [assignment_crops, tau] : {std::pair(size_t{2}, 0.1), {3, 0.3}, {1, 0.1}})
    expect_complex_step(assignment_crops, tau);
}

TEST(DeepCluster, ClustersTheSupportAndReducesThePrototypes) {
  DeepClusterParameters parameters;
  parameters.width = 6;
  parameters.prototypes = 50;
  DeepCluster objective(parameters, 10, 4);
  EXPECT_EQ(objective.support().samples, Support::kAll);
  EXPECT_NE(objective.views()[0].draw, objective.views()[1].draw);
  EXPECT_FALSE(objective.views()[1].gradient);
  Matrix<float> kept(2 * 20, 6);
  objective.reduce_support(matrix_of<float>(random_rows(40, 10, 1)), kept);
  for (size_t i = 0; i < 40; ++i) {
    double square = 0;
    for (size_t j = 0; j < 6; ++j) square += kept(i, j) * kept(i, j);
    EXPECT_NEAR(square, 1, 1e-6);
  }
  Pool pool(2);
  objective.prepare(kept, 2, pool);
  EXPECT_EQ(objective.prototypes_used(), 20u);
  ASSERT_EQ(objective.notes(2).size(), 1u);
  EXPECT_NE(objective.notes(2)[0].find("20 prototypes instead of 50"), std::string::npos);
  Matrix<float> e = matrix_of<float>(random_rows(10, 10, 7)), g(10, 10), g2(10, 10);
  const double loss = objective.loss_and_gradient({e}, {g, {}});
  EXPECT_TRUE(std::isfinite(loss));
  DeepCluster other(parameters, 10, 5);
  EXPECT_TRUE(other.notes(2).empty());
  other.restore(objective.state());
  EXPECT_EQ(other.notes(2), objective.notes(2)) << "later runs have the same prototypes";
  EXPECT_EQ(other.loss_and_gradient({e}, {g2, {}}), loss);
  EXPECT_EQ(std::memcmp(g.data(), g2.data(), 100 * sizeof(float)), 0);
}

// Clusters by dot product, written plainly and in f64; a centroid without members stays.
Rows<double> plain_clusters(const Rows<double>& points, Rows<double> centroids, size_t iterations) {
  for (size_t round = 0; round < iterations; ++round) {
    Rows<double> sum(centroids.size(), std::vector<double>(points[0].size()));
    std::vector<double> members(centroids.size());
    for (const auto& point : points) {
      size_t best = 0;
      for (size_t c = 1; c < centroids.size(); ++c)
        if (dot(point, centroids[c]) > dot(point, centroids[best])) best = c;
      members[best] += 1;
      for (size_t j = 0; j < point.size(); ++j) sum[best][j] += point[j];
    }
    for (size_t c = 0; c < centroids.size(); ++c)
      if (members[c] > 0) centroids[c] = divided(sum[c], members[c]);
  }
  return centroids;
}

Rows<double> rows_of(const Matrix<float>& matrix) {
  Rows<double> rows;
  for (size_t i = 0; i < matrix.rows(); ++i)
    rows.emplace_back(matrix.row(i), matrix.row(i) + matrix.cols());
  return rows;
}

// SPEC 2.5: set h clusters crop h mod 2, from the first samples of a random permutation of its own,
// by dot product.
TEST(DeepCluster, EachSetStartsFromSamplesOfItsOwnAndItsCrop) {
  constexpr size_t kSamples = 20;
  DeepClusterParameters parameters;
  parameters.width = 6;
  parameters.prototypes = 5;
  parameters.iterations = 0;  // they stay where they start
  DeepCluster objective(parameters, 10, 4);
  const Matrix<float> kept = matrix_of<float>(random_rows(2 * kSamples, 6, 1));
  Pool pool(1);
  objective.prepare(kept, 2, pool);
  const std::vector<NamedMatrix> state = objective.state();
  const Matrix<float>& prototypes = state_named(state, "prototypes");
  ASSERT_EQ(prototypes.rows(), 15u);
  std::vector<std::vector<size_t>> samples(3);
  for (size_t row = 0; row < 15; ++row) {
    size_t point = 0;
    while (point < 2 * kSamples &&
           !std::equal(prototypes.row(row), prototypes.row(row) + 6, kept.row(point)))
      ++point;
    ASSERT_LT(point, 2 * kSamples) << row;
    const size_t h = row / 5;
    EXPECT_EQ(point % 2, h % 2) << "the crop of set " << h;
    samples[h].push_back(point / 2);
  }
  EXPECT_NE(samples[0], samples[1]);
  EXPECT_NE(samples[0], samples[2]);
  EXPECT_NE(samples[1], samples[2]);

  DeepClusterParameters moved = parameters;
  moved.iterations = 4;
  DeepCluster clustered(moved, 10, 4);
  clustered.prepare(kept, 2, pool);
  const std::vector<NamedMatrix> moved_state = clustered.state();
  const Rows<double> all = rows_of(kept), start = rows_of(prototypes),
                     found = rows_of(state_named(moved_state, "prototypes"));
  for (size_t h = 0; h < 3; ++h) {
    Rows<double> points, centroids(start.begin() + h * 5, start.begin() + (h + 1) * 5);
    for (size_t i = h % 2; i < all.size(); i += 2) points.push_back(all[i]);
    const Rows<double> expected = plain_clusters(points, centroids, 4);
    for (size_t c = 0; c < 5; ++c)
      for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(found[h * 5 + c][j], expected[c][j], 1e-5);
  }

  DeepCluster of_another_seed(parameters, 10, 5);
  of_another_seed.prepare(kept, 2, pool);
  const std::vector<NamedMatrix> others = of_another_seed.state();
  EXPECT_FALSE(std::equal(prototypes.data(), prototypes.data() + 15 * 6,
                          state_named(others, "prototypes").data()));
}

}  // namespace
}  // namespace fungi
