// SPDX-License-Identifier: Apache-2.0
// The int8 tables that can run here: those of the processor, whatever it would choose, and emulated
// ones.
#pragma once

#include "tests/kernel/support.h"

namespace fungi::kernel {

extern const ByteProducts emulated_vnni_int8, emulated_avxvnni_int8, emulated_amx_int8;

inline std::vector<const Kernel*> byte_tables() {
  static std::vector<Kernel> own;
  if (own.empty()) {
    own.push_back(with_bytes(generic_bf16, generic_int8));
    if (cpu().avx2) own.push_back(with_bytes(avx2_bf16, avx2_int8));
    if (cpu().avx_vnni) own.push_back(with_bytes(avx2_bf16, avxvnni_int8));
    if (cpu().avx512) own.push_back(with_bytes(avx512_bf16, avx512_int8));
    if (cpu().avx512_vnni) own.push_back(with_bytes(avx512_bf16, avx512vnni_int8));
    if (cpu().avx512_vnni && cpu().avx512_bf16)
      own.push_back(with_bytes(avx512_pairs_bf16, avx512vnnibf16_int8));
    if (cpu().amx_int8) own.push_back(with_bytes(amx_bf16, amx_int8));
    if (cpu().avx2)
      for (const ByteProducts* products :
           {&emulated_vnni_int8, &emulated_avxvnni_int8, &emulated_amx_int8})
        own.push_back(with_bytes(avx2_bf16, *products));
  }
  std::vector<const Kernel*> list;
  for (const Kernel& table : own) list.push_back(&table);
  return list;
}

}  // namespace fungi::kernel
