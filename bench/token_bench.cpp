// SPDX-License-Identifier: Apache-2.0
// Tokenises the lines of a file on one thread; bench/compare_tokens.py runs it beside its peer.
//   token_bench TOKENIZER LINES [repeats]
// prints JSON: seconds of the best repeat on the clock and on the processor, and what came out.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/token/tokenizer.h"

namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fungi::fail("cannot be opened", path, "check the path");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

void run(const char* folder, const char* file, int repeats) {
  using Clock = std::chrono::steady_clock;
  const auto opening = Clock::now();
  const auto tokenizer = fungi::Tokenizer::open(folder);
  const std::chrono::duration<double> opened = Clock::now() - opening;
  const auto lines = lines_of(file);
  double best = std::numeric_limits<double>::infinity(), best_processor = best;
  size_t ids = 0;
  uint64_t sum = 0;
  for (int i = 0; i < repeats; ++i) {
    ids = 0, sum = 0;
    const auto start = Clock::now();
    const double processor = processor_seconds();
    for (const std::string& line : lines) {
      const fungi::Tokens tokens = tokenizer->encode(line);
      ids += tokens.ids.size();
      for (const int32_t id : tokens.ids) sum += uint64_t(id);
    }
    best_processor = std::min(best_processor, processor_seconds() - processor);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  fmt::print(
      "{{\"what\": \"{}\", \"open\": {}, \"texts\": {}, \"ids\": {}, \"sum\": {}, "
      "\"seconds\": {}, \"processor\": {}}}\n",
      tokenizer->describe(), opened.count(), lines.size(), ids, sum, best, best_processor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "token_bench TOKENIZER LINES [repeats]\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 3);
  } catch (const fungi::Error& error) {
    fmt::print(stderr, "token_bench: {}\n", error.what());
    return 1;
  }
}
