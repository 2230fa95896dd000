// SPDX-License-Identifier: Apache-2.0
// Chooses the scan table.
#include "fungi/search/scan_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi::search {

extern const ScanKernel kScanGeneric;
#if defined(__x86_64__)
extern const ScanKernel kScanAvx2, kScanVnni;
#endif

const ScanKernel& scan_kernel(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512 && cpu().avx512_vnni) return kScanVnni;
  if (isa != Isa::generic) return kScanAvx2;
#endif
  (void)isa;
  return kScanGeneric;
}

}  // namespace fungi::search
