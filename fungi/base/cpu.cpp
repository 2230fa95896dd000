// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "fungi/base/error.h"

namespace fungi {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

unsigned long long enabled_state() {  // XCR0: which register files the kernel saves for us
  unsigned low = 0, high = 0;
  if (cpuid(1).c & (1u << 27)) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

bool request_amx() {  // Linux grants tile data per process, on request
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::string brand() {
  char text[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i);
    std::memcpy(text + 16 * i, &r, 16);
  }
  std::string name(text);
  const size_t first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown";
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
}

unsigned count_physical(const cpu_set_t& allowed) {
  std::set<std::string> cores;
  for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(i) +
                           "/topology/thread_siblings_list");
    std::string line;
    cores.insert(std::getline(siblings, line) ? line : "cpu" + std::to_string(i));
  }
  return cores.empty() ? 1u : unsigned(cores.size());
}

}  // namespace

unsigned parse_quota(std::string_view text) {  // "150000 100000", or "max 100000"
  std::istringstream words{std::string(text)};
  double time = 0, period = 0;
  if (!(words >> time >> period) || !(time > 0) || !(period > 0)) return 0;
  return unsigned(std::clamp(std::ceil(time / period), 1.0, 1e6));
}

size_t parse_memory_limit(std::string_view text) {  // "4294967296", or "max"
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() && bytes ? bytes : SIZE_MAX;
}

namespace {

std::string line_of(const std::string& path) {
  std::string text;
  std::ifstream file(path);
  std::getline(file, text);
  return text;
}

// What a container is allowed: cgroup version 2, then version 1.
unsigned read_quota() {
  if (const unsigned found = parse_quota(line_of("/sys/fs/cgroup/cpu.max"))) return found;
  return parse_quota(line_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") + " " +
                     line_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}

size_t read_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  size_t bytes = pages > 0 && size > 0 ? size_t(pages) * size_t(size) : size_t{4} << 30;
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    bytes = std::min(bytes, parse_memory_limit(line_of(file)));
  return bytes;
}

// What one core sees of a level. The kernel's answer comes first: the C library's may count the L3
// of a whole machine.
size_t cache_bytes(const std::string& level, int name) {
  for (int i = 0; i < 8; ++i) {
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i);
    size_t kilobytes = 0;
    if (line_of(cache + "/level") == level && line_of(cache + "/type") != "Instruction" &&
        std::istringstream(line_of(cache + "/size")) >> kilobytes)  // "32768K"
      return kilobytes * 1024;
  }
  const long bytes = sysconf(name);
  return bytes > 0 ? size_t(bytes) : 0;
}

Cpu detect() {
  Cpu c;
  c.name = brand();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    c.logical_cores = unsigned(CPU_COUNT(&allowed));
    c.physical_cores = count_physical(allowed);
  }
  c.quota = read_quota();
  c.memory_bytes = read_memory();
  c.l1d_bytes = cache_bytes("1", _SC_LEVEL1_DCACHE_SIZE);
  c.l2_bytes = cache_bytes("2", _SC_LEVEL2_CACHE_SIZE);
  c.l3_bytes = cache_bytes("3", _SC_LEVEL3_CACHE_SIZE);

  const unsigned long long state = enabled_state();
  const Registers one = cpuid(1), seven = cpuid(7), seven1 = cpuid(7, 1);
  const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6,
             tiles = (state & 0x60000) == 0x60000;
  c.avx2 = ymm && (seven.b >> 5 & 1) && (one.c >> 12 & 1) && (one.c >> 29 & 1);  // avx2, fma, f16c
  // avx512 f, dq, bw, vl: what every server part since Skylake has
  c.avx512 = c.avx2 && zmm && (seven.b >> 16 & 1) && (seven.b >> 17 & 1) && (seven.b >> 30 & 1) &&
             (seven.b >> 31 & 1);
  c.avx512_bf16 = c.avx512 && (seven1.a >> 5 & 1);
  c.avx512_vnni = c.avx512 && (seven.c >> 11 & 1);
  c.avx_vnni = c.avx2 && (seven1.a >> 4 & 1);
  const bool has_tiles = c.avx512_bf16 && (seven.d >> 24 & 1) && (seven.d >> 22 & 1);
  c.amx_bf16 = has_tiles && tiles && request_amx();
  c.amx_int8 = c.amx_bf16 && (seven.d >> 25 & 1);
  c.amx_refused = has_tiles && !c.amx_bf16;
#ifdef FUNGI_EMULATE_TILES
  c.amx_bf16 = c.amx_int8 = c.avx512_bf16;  // what the tables need besides tiles
#endif
  return c;
}

}  // namespace

const Cpu& cpu() {
  static const Cpu found = detect();
  return found;
}

const char* to_string(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return "generic";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

Isa parse_isa(std::string_view name) {
  for (Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::amx})
    if (name == to_string(isa)) return isa;
  fail("unknown instruction set '" + std::string(name) + "'", "",
       "choose generic, avx2, avx512 or amx");
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> list{Isa::generic};
  if (cpu().avx2) list.push_back(Isa::avx2);
  if (cpu().avx512) list.push_back(Isa::avx512);
  if (cpu().amx_bf16) list.push_back(Isa::amx);
  return list;
}

Isa best_isa() {
  const std::vector<Isa> supported = supported_isas();
  const char* forced = std::getenv("FUNGI_ISA");
  if (!forced || !*forced) return supported.back();
  const Isa wanted = parse_isa(forced);
  for (Isa isa : supported)
    if (isa == wanted) return isa;
  fail("this machine cannot run '" + std::string(forced) + "'", "FUNGI_ISA",
       std::string("the best it has is ") + to_string(supported.back()));
}

}  // namespace fungi
