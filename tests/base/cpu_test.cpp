// SPDX-License-Identifier: Apache-2.0
// What we find out about this machine against what its kernel says.
#include "fungi/base/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/errors.h"

namespace fungi {
namespace {

// The words of the first line of /proc/cpuinfo of that name.
std::vector<std::string> kernels_words(const char* name) {
  std::ifstream file("/proc/cpuinfo");
  std::vector<std::string> found;
  for (std::string line; found.empty() && std::getline(file, line);)
    if (line.starts_with(name)) {
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;) found.push_back(word);
    }
  return found;
}

TEST(Cpu, HasTheInstructionsThatTheKernelNames) {
  const std::vector<std::string> flags = kernels_words("flags");
  if (flags.empty()) GTEST_SKIP() << "needs /proc/cpuinfo with a line of flags";
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) {
      return std::count(flags.begin(), flags.end(), name) > 0;
    });
  };
  const bool avx512 = all({"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl"});
  EXPECT_EQ(cpu().avx2, all({"avx2", "fma", "f16c"}));
  EXPECT_EQ(cpu().avx512, avx512);
  EXPECT_EQ(cpu().avx512_bf16, avx512 && all({"avx512_bf16"}));
  EXPECT_EQ(cpu().avx512_vnni, avx512 && all({"avx512_vnni"}));
  const bool tiles = all({"amx_tile", "amx_bf16", "avx512_bf16"}) && avx512;
  EXPECT_EQ(cpu().amx_refused, tiles && !cpu().amx_bf16);
}

TEST(Cpu, CallsItselfAsTheKernelCallsIt) {
  std::istringstream own(cpu().name);
  std::vector<std::string> words;
  for (std::string word; own >> word;) words.push_back(word);
  const std::vector<std::string> expected = kernels_words("model name");
  if (expected.empty()) GTEST_SKIP() << "needs /proc/cpuinfo with the name of the model";
  EXPECT_EQ(words, expected);
  EXPECT_EQ(cpu().name.find_first_not_of(' '), 0u);
}

TEST(Cpu, CoresAndCachesAreSuchAsThereAre) {
  EXPECT_EQ(cpu().logical_cores, std::thread::hardware_concurrency());
  EXPECT_GE(cpu().physical_cores, 1u);
  EXPECT_LE(cpu().physical_cores, cpu().logical_cores);
  if (cpu().l1d_bytes > 0 && cpu().l2_bytes > 0) {
    EXPECT_GE(cpu().l1d_bytes, size_t{4} << 10);
    EXPECT_LE(cpu().l1d_bytes, size_t{1} << 20);
    EXPECT_GE(cpu().l2_bytes, cpu().l1d_bytes);
  }
}

TEST(Cpu, MemoryIsThatOfTheMachineOrOfItsContainer) {
  size_t bytes = 0;
  std::ifstream machine("/proc/meminfo");
  for (std::string word; bytes == 0 && machine >> word;)
    if (word == "MemTotal:") machine >> bytes;
  bytes *= 1024;
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::string line;
    std::getline(std::ifstream(file), line);
    bytes = std::min(bytes, parse_memory_limit(line));
  }
  EXPECT_EQ(cpu().memory_bytes, bytes);
}

TEST(Cpu, InstructionSetsHaveNames) {
  for (const Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::amx})
    EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_ERROR("generic, avx2, avx512", parse_isa("avx"));
  EXPECT_EQ(supported_isas().front(), Isa::generic);
}

}  // namespace
}  // namespace fungi
