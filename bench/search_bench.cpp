// SPDX-License-Identifier: Apache-2.0
// The library's side of compare_search.py: runs one algorithm on raw files and prints one JSON
// object.
//   search_bench knn      DATABASE QUERIES WIDTH K THREADS REPEATS [SCAN]
//   search_bench index    DATABASE QUERIES WIDTH K THREADS REPEATS KIND METRIC EFFORT
//   search_bench pca      ROWS WIDTH DIM THREADS REPEATS
//   search_bench kmeans   ROWS START WIDTH ITERATIONS THREADS REPEATS
//   search_bench logistic ROWS LABELS WIDTH LAMBDA THREADS REPEATS
// Matrices are f32, row-major; labels int64. knn leaves its neighbours (uint32) in a file beside
// the database.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fungi/evaluate/softmax_regression.h"
#include "fungi/pca/covariance.h"
#include "fungi/pca/pca.h"
#include "fungi/search/index.h"
#include "fungi/search/kmeans.h"
#include "fungi/search/knn.h"
#include "fungi/search/scan.h"

namespace {

using namespace fungi;
using Arguments = std::vector<std::string>;

template <class T>
std::vector<T> read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) fail("cannot be read", path);
  std::vector<T> values(size_t(in.tellg()) / sizeof(T));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(values.data()), std::streamsize(values.size() * sizeof(T)));
  return values;
}

Matrix<float> read_matrix(const std::string& path, size_t width) {
  const std::vector<float> values = read_all<float>(path);
  Matrix<float> m(values.size() / width, width);
  std::copy_n(values.data(), m.rows() * width, m.data());
  return m;
}

size_t number(const Arguments& a, size_t i) { return std::stoul(a.at(i)); }

struct Time {
  double clock = 1e300, cpu = 1e300;  // of the fastest run; cpu adds up all threads
};

Time best_of(size_t repeats, const std::function<void()>& body) {
  Time best;
  for (size_t i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    body();
    best.cpu = std::min(best.cpu, double(std::clock() - cpu) / CLOCKS_PER_SEC);
    best.clock =
        std::min(best.clock,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

void print(const Time& time, const std::string& rest) {
  fmt::print("{{\"seconds\": {:.6f}, \"cpu_seconds\": {:.6f}, {}}}\n", time.clock, time.cpu, rest);
}

const char* name_of(ScanKind kind) {
  return kind == ScanKind::f32 ? "f32" : kind == ScanKind::bf16 ? "bf16" : "bytes";
}

ScanKind parse_scan(const std::string& name) {
  for (ScanKind kind : {ScanKind::f32, ScanKind::bf16, ScanKind::bytes})
    if (name == name_of(kind)) return kind;
  return ScanKind::automatic;
}

void run_knn(const Arguments& a) {
  const Matrix<float> database = read_matrix(a.at(1), number(a, 3)),
                      queries = read_matrix(a.at(2), number(a, 3));
  Pool pool(unsigned(number(a, 5)));
  KnnOptions options;
  if (a.size() > 7) options.scan = parse_scan(a[7]);
  KnnWork work;
  Neighbours found;
  const Time time = best_of(
      number(a, 6), [&] { found = knn(database, queries, number(a, 4), pool, options, &work); });
  std::ofstream(std::filesystem::path(a.at(1)).parent_path() / "neighbours", std::ios::binary)
      .write(reinterpret_cast<const char*>(found.index.data()),
             std::streamsize(found.index.rows() * found.index.cols() * sizeof(uint32_t)));
  print(time, fmt::format("\"scan\": \"{}\", \"open_share\": {:.6f}",
                          name_of(search::resolve(options.scan)),
                          double(work.exact) / double(work.pairs)));
}

// Builds once, searches `repeats` times; effort is hnsw's, or probes of ivf.
void run_index(const Arguments& a) {
  const Matrix<float> database = read_matrix(a.at(1), number(a, 3)),
                      queries = read_matrix(a.at(2), number(a, 3));
  Pool pool(unsigned(number(a, 5)));
  const IndexOptions options{.kind = parse_index_kind(a.at(7)), .metric = parse_metric(a.at(8))};
  std::unique_ptr<Index> index;
  const Time build =
      best_of(1, [&] { index = std::make_unique<Index>(Index::build(database, options, pool)); });
  const SearchOptions how{.probes = number(a, 9), .effort = number(a, 9)};
  Neighbours found;
  const Time time =
      best_of(number(a, 6), [&] { found = index->search(queries, number(a, 4), pool, how); });
  const Neighbours exact = knn(database, queries, number(a, 4), pool, {.metric = options.metric});
  print(time, fmt::format("\"build_seconds\": {:.4f}, \"build_cpu_seconds\": {:.4f}, "
                          "\"recall\": {:.5f}",
                          build.clock, build.cpu, recall(found, exact)));
}

void run_pca(const Arguments& a) {
  const Matrix<float> rows = read_matrix(a.at(1), number(a, 2));
  Pool pool(unsigned(number(a, 4)));
  Pca pca;
  const Time time = best_of(number(a, 5), [&] { pca = Pca::fit(rows, number(a, 3), pool); });
  const Time products = best_of(1, [&] {
    Covariance covariance(rows.cols());
    covariance.add(rows, pool);
    covariance.finish(pool);
  });
  const std::vector<float>& variance = pca.explained_variance();
  print(time,
        fmt::format("\"covariance_seconds\": {:.6f}, \"variance\": [{}]", products.clock,
                    fmt::join(variance.begin(),
                              variance.begin() + std::min<ptrdiff_t>(20, ssize(variance)), ", ")));
}

void run_kmeans(const Arguments& a) {
  const Matrix<float> rows = read_matrix(a.at(1), number(a, 3)),
                      start = read_matrix(a.at(2), number(a, 3));
  Pool pool(unsigned(number(a, 5)));
  KMeans result;
  const Time time = best_of(number(a, 6), [&] {
    result = kmeans(rows,
                    {.clusters = start.rows(),
                     .iterations = number(a, 4),
                     .rows_per_cluster = 0,
                     .initial = start},
                    pool);
  });
  print(time,
        fmt::format("\"inertia\": {:.10g}, \"iterations\": {}", result.inertia, result.iterations));
}

void run_logistic(const Arguments& a) {
  const Matrix<float> rows = read_matrix(a.at(1), number(a, 3));
  const std::vector<int64_t> labels = read_all<int64_t>(a.at(2));
  Pool pool(unsigned(number(a, 5)));
  SoftmaxModel model;
  const Time time = best_of(number(a, 6), [&] {
    model = SoftmaxRegression(rows, labels, pool).fit({.lambda = std::stod(a.at(4))});
  });
  print(time,
        fmt::format(
            "\"objective\": {:.10g}, \"gap\": {:.4g}, \"iterations\": {}, \"evaluations\": {}",
            model.objective, model.gap, model.iterations, model.evaluations));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  const std::string verb = arguments.empty() ? "" : arguments[0];
  try {
    if (verb == "knn") return run_knn(arguments), 0;
    if (verb == "index") return run_index(arguments), 0;
    if (verb == "pca") return run_pca(arguments), 0;
    if (verb == "kmeans") return run_kmeans(arguments), 0;
    if (verb == "logistic") return run_logistic(arguments), 0;
    fmt::print(stderr, "usage: see the head of bench/search_bench.cpp\n");
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
