// SPDX-License-Identifier: Apache-2.0
// The library's side of compare_search.py: runs one algorithm on raw f32 files and prints one JSON object.
//   search_bench knn  DATABASE QUERIES WIDTH K THREADS REPEATS [scan]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "fungi/search/knn.h"

namespace {

using namespace fungi;

Matrix<float> read_matrix(const std::string& path, size_t width) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) fail("cannot be read", path);
  const size_t count = size_t(in.tellg()) / sizeof(float);
  Matrix<float> m(count / width, width);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(m.data()), std::streamsize(m.rows() * width * sizeof(float)));
  return m;
}

double best_seconds(size_t repeats, const std::function<void()>& body) {
  double best = 1e300;
  for (size_t i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

ScanKind parse_scan(const std::string& name) {
  for (ScanKind kind : {ScanKind::f32, ScanKind::bf16, ScanKind::bytes})
    if (name == to_string(kind)) return kind;
  return ScanKind::automatic;
}

int run_knn(const std::vector<std::string>& a) {
  const size_t width = std::stoul(a.at(3));
  const Matrix<float> database = read_matrix(a.at(1), width), queries = read_matrix(a.at(2), width);
  Pool pool(unsigned(std::stoul(a.at(5))));
  KnnOptions options;
  if (a.size() > 7) options.scan = parse_scan(a[7]);
  if (a.size() > 8) options.database_block = std::stoul(a[8]);
  KnnWork work;
  Neighbours found;
  const double seconds = best_seconds(std::stoul(a.at(6)), [&] {
    found = knn(database, queries, std::stoul(a.at(4)), pool, options, &work);
  });
  double sum = 0;
  for (size_t i = 0; i < found.index.rows(); ++i) sum += found.value(i, 0);
  fmt::print("{{\"seconds\": {:.4f}, \"scan\": \"{}\", \"exact_share\": {:.6f}, \"checksum\": {:.9g}}}\n", seconds,
             to_string(search::resolve(options.scan)), double(work.exact) / double(work.pairs), sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (!arguments.empty() && arguments[0] == "knn") return run_knn(arguments);
    fmt::print(stderr, "usage: see the head of bench/search_bench.cpp\n");
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
