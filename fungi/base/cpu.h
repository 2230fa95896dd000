// SPDX-License-Identifier: Apache-2.0
// What this machine can do, found once, and which instruction set to use.
// FUNGI_ISA=generic|avx2|avx512|amx forces one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

enum class Isa { generic, avx2, avx512, amx };

struct Cpu {
  std::string name;             // as the processor calls itself
  unsigned logical_cores = 1;   // that this process may run on
  unsigned physical_cores = 1;  // without hyper-threads
  unsigned quota = 0;           // cores' worth of time that a container may use; 0 = no limit
  size_t memory_bytes = 0;      // of the machine, or what a container may use of it
  size_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  bool avx2 = false, avx512 = false, avx512_bf16 = false, avx512_vnni = false, avx_vnni = false,
       amx_bf16 = false, amx_int8 = false;  // usable, not merely advertised
  bool amx_refused = false;  // the processor has tiles, the system does not grant them
};

const Cpu& cpu();
unsigned parse_quota(std::string_view cpu_max);          // cores' worth, rounded up; 0 = none
size_t parse_memory_limit(std::string_view memory_max);  // bytes; SIZE_MAX = none

const char* to_string(Isa isa);
Isa parse_isa(std::string_view name);  // throws Error naming the choices
std::vector<Isa> supported_isas();     // slowest first; generic is always there
Isa best_isa();  // the fastest supported one, or the one FUNGI_ISA names (Error if it cannot run)

}  // namespace fungi
