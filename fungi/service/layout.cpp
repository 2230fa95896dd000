// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/layout.h"

#include <algorithm>
#include <cmath>

#include "fungi/base/random.h"
#include "fungi/pca/pca.h"
#include "fungi/search/knn.h"

namespace fungi::service {
namespace {

constexpr size_t kNeighbours = 15, kEpochs = 300, kPushed = 5;
// 1 / (1 + a d^2b) falls from one to zero around a distance of 0.5: McInnes and others 2018, with
// min_dist 0.5 and spread 1, at which the points of a class can still be told apart.
constexpr double kA = 0.583, kB = 1.334;
constexpr double kMostMove = 4, kStart = 10;

// Each axis to -1..1 about its middle, both by the same factor.
void fit(Matrix<float>& points) {
  float low[2] = {1e30f, 1e30f}, high[2] = {-1e30f, -1e30f};
  for (size_t i = 0; i < points.rows(); ++i)
    for (size_t c = 0; c < 2; ++c)
      low[c] = std::min(low[c], points(i, c)), high[c] = std::max(high[c], points(i, c));
  const float half = std::max({high[0] - low[0], high[1] - low[1], 1e-20f}) / 2;
  for (size_t i = 0; i < points.rows(); ++i)
    for (size_t c = 0; c < 2; ++c)
      points(i, c) = std::clamp((points(i, c) - (low[c] + high[c]) / 2) / half, -1.0f, 1.0f);
}

struct Edge {
  uint32_t from, to;
  double weight;
};

// The weights of a row's neighbours: one for the nearest, all together log2(k).
void weigh(const Neighbours& found, size_t row, std::vector<Edge>& edges) {
  const size_t k = found.index.cols();
  const auto distance = [&](size_t i) { return found.value(row, i); };
  const double nearest = distance(0), wanted = std::log2(double(k) + 1);
  double low = 0, high = 1e6, scale = 1;
  for (int step = 0; step < 64; ++step) {
    double sum = 0;
    for (size_t i = 0; i < k; ++i) sum += std::exp(-(distance(i) - nearest) / scale);
    (sum > wanted ? high : low) = scale;
    scale = high > 1e5 ? scale * 2 : (low + high) / 2;
  }
  scale = std::max(scale, 1e-9);
  for (size_t i = 0; i < k; ++i)
    edges.push_back({uint32_t(row), found.index(row, i),
                     std::exp(-(distance(i) - nearest) / scale)});
}

// a + b - ab of both directions, each pair once.
std::vector<Edge> united(std::vector<Edge> edges) {
  for (Edge& e : edges)
    if (e.from > e.to) std::swap(e.from, e.to);
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
    return std::pair(x.from, x.to) < std::pair(y.from, y.to);
  });
  std::vector<Edge> out;
  for (const Edge& e : edges)
    if (!out.empty() && out.back().from == e.from && out.back().to == e.to)
      out.back().weight += e.weight - out.back().weight * e.weight;
    else
      out.push_back(e);
  return out;
}

}  // namespace

Matrix<float> principal_plane(View<const float> rows, Pool& pool) {
  Matrix<float> points = Pca::fit(rows, 2, pool).transform(rows, pool);
  fit(points);
  return points;
}

Matrix<float> neighbour_plane(View<const float> rows, View<const float> plane, Metric metric,
                              Pool& pool) {
  const size_t n = rows.rows, k = std::min(kNeighbours, n - 1);
  Neighbours found = knn(rows, rows, k, pool, {.metric = metric, .skip_same_row = true});
  if (metric != Metric::euclidean)  // similarities: the larger, the nearer
    for (size_t i = 0; i < n * k; ++i) found.value.data()[i] = -found.value.data()[i];
  std::vector<Edge> edges;
  for (size_t row = 0; row < n; ++row) weigh(found, row, edges);
  edges = united(std::move(edges));
  double heaviest = 0;
  for (const Edge& e : edges) heaviest = std::max(heaviest, e.weight);

  std::vector<double> at(2 * n);
  const RandomStream shake(42, "map"), draws(42, "map pushes");
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < 2; ++c)  // equal rows must not lie on one point
      at[2 * i + c] = kStart * double(plane(i, c)) + 1e-3 * (shake.uniform(2 * i + c) - 0.5);
  const auto move = [&](size_t i, size_t j, double force, double rate, bool both) {
    for (size_t c = 0; c < 2; ++c) {
      const double step =
          rate * std::clamp(force * (at[2 * i + c] - at[2 * j + c]), -kMostMove, kMostMove);
      at[2 * i + c] += step;
      if (both) at[2 * j + c] -= step;
    }
  };
  const auto squared = [&](size_t i, size_t j) {
    const double x = at[2 * i] - at[2 * j], y = at[2 * i + 1] - at[2 * j + 1];
    return x * x + y * y;
  };
  uint64_t drawn = 0;
  for (size_t epoch = 0; epoch < kEpochs; ++epoch) {
    const double rate = 1 - double(epoch) / kEpochs;
    for (const Edge& e : edges) {
      // Heavy edges pull in every epoch, light ones now and then.
      const double share = e.weight / heaviest;
      if (std::floor(double(epoch + 1) * share) == std::floor(double(epoch) * share)) continue;
      const double d2 = squared(e.from, e.to);
      if (d2 > 0) {
        const double power = std::pow(d2, kB);
        move(e.from, e.to, -2 * kA * kB * power / d2 / (1 + kA * power), rate, true);
      }
      for (size_t p = 0; p < kPushed; ++p) {
        const size_t other = draws.bits(drawn++) % n, one = p % 2 ? e.to : e.from;
        if (other == one) continue;
        const double d = squared(one, other);
        move(one, other, 2 * kB / ((0.001 + d) * (1 + kA * std::pow(d, kB))), rate, false);
      }
    }
  }
  Matrix<float> points(n, 2);
  for (size_t i = 0; i < 2 * n; ++i) points.data()[i] = float(at[i]);
  fit(points);
  return points;
}

}  // namespace fungi::service
