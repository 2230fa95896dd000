// SPDX-License-Identifier: Apache-2.0
// The library's side of compare_bank.py, which asks how fast a bank of patch features is searched.
//   bank_bench make FOLDER ROWS WIDTH THREADS    a bank of made-up features, and queries.npy
//   bank_bench search FOLDER K THREADS REPEATS LISTS PROBES RERANK
//   bank_bench recall FOLDER K THREADS QUERIES LISTS PROBES RERANK
// Each prints one JSON object. The features lie as those of patches do: many groups, most of what
// varies within them in few directions.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <string>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/segment/bank.h"

namespace {

using namespace fungi;

constexpr size_t kGroups = 2000, kDirections = 48, kChunk = 4096, kQueries = 2048;

// Rows `first` .. of an endless sequence.
Matrix<float> rows_of(const char* purpose, size_t first, size_t count, size_t width, Pool& pool) {
  static Matrix<float> directions, centres;
  if (directions.cols() != width) {
    directions = Matrix<float>(kDirections, width);
    centres = Matrix<float>(kGroups, width);
    const RandomStream a(1, "directions"), b(2, "centres");
    for (size_t i = 0; i < directions.rows() * width; ++i)
      directions.data()[i] = float(a.normal(i));
    for (size_t i = 0; i < centres.rows() * width; ++i) centres.data()[i] = float(b.normal(i));
  }
  Matrix<float> rows(count, width);
  pool.parallel_for(count, 64, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i) {
      const RandomStream own(3, purpose, first + i);
      float* row = rows.row(i);
      const float* centre = centres.row(own.bits(0) % kGroups);
      for (size_t c = 0; c < width; ++c)
        row[c] = centre[c] + 0.5f * float(own.uniform(1000 + c) - 0.5);
      for (size_t d = 0; d < kDirections; ++d) {
        const float along = 1.2f * float(own.normal(d + 1)) / float(std::sqrt(d + 1.0));
        for (size_t c = 0; c < width; ++c) row[c] += along * directions(d, c);
      }
      double sum = 0;
      for (size_t c = 0; c < width; ++c) sum += double(row[c]) * row[c];
      const auto scale = float(1 / std::sqrt(sum));
      for (size_t c = 0; c < width; ++c) row[c] *= scale;
    }
  });
  return rows;
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  for (double kb = 0; status >> word;)
    if (word == "VmHWM:" && status >> kb) return kb / 1024;
  return 0;
}

void make(const std::string& folder, size_t rows, size_t width, Pool& pool) {
  BankWriter writer(folder, {.width = width, .classes = 2});
  while (writer.rows() < rows) {
    const size_t count = std::min(kChunk, rows - writer.rows());
    Matrix<float> labels(count, 2);
    for (size_t i = 0; i < count; ++i) labels(i, i % 2) = 1;
    writer.add(rows_of("row", writer.rows(), count, width, pool), labels);
  }
  writer.finish();
  write_npy(folder + "/queries.npy", npy_array(rows_of("query", 0, kQueries, width, pool)));
  fmt::print("{{\"rows\": {}, \"width\": {}}}\n", rows, width);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const auto number = [&](size_t i) { return std::stoul(a.at(i)); };
  const std::string folder = a.at(1);
  if (a.at(0) == "make") {
    Pool pool(unsigned(number(4)));
    make(folder, number(2), number(3), pool);
    return 0;
  }
  Pool pool(unsigned(number(3)));
  const size_t k = number(2);
  const BankSearchOptions options{.search = number(5) ? BankSearch::ivf : BankSearch::exact,
                                  .lists = number(5),
                                  .probes = number(6),
                                  .rerank = number(7)};
  Bank bank = Bank::open(folder);
  const auto begin = std::chrono::steady_clock::now();
  bank.prepare(options, pool);
  const auto since = [](auto then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
  };
  const double prepared = since(begin);
  const NpyFile file = NpyFile::open(folder + "/queries.npy");
  const View<const float> queries = file.view<float>();
  if (a[0] == "recall") {
    const auto some = queries.slice(0, std::min(number(4), queries.rows));
    fmt::print("{{\"recall\": {:.4f}, \"prepared\": {:.1f}, \"peak_mb\": {:.1f}}}\n",
               bank.recall(some, k, pool), prepared, peak_mb());
    return 0;
  }
  double clock = 1e300, cpu = 1e300;
  for (size_t i = 0; i < number(4); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t used = std::clock();
    bank.search(queries, k, pool);
    cpu = std::min(cpu, double(std::clock() - used) / CLOCKS_PER_SEC);
    clock = std::min(clock, since(start));
  }
  fmt::print(
      "{{\"queries\": {}, \"seconds\": {:.4f}, \"cpu_seconds\": {:.4f}, "
      "\"peak_mb\": {:.0f}}}\n",
      queries.rows, clock, cpu, peak_mb());
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
