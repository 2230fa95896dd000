// SPDX-License-Identifier: Apache-2.0
// Chooses the scan table.
#include "fungi/search/scan_kernel.h"

#include "fungi/base/cpu.h"

namespace fungi::search {

const ScanKernel& scan_kernel(Isa isa) {
  if (isa >= Isa::avx512 && cpu().avx512_vnni) return kScanVnni;
  if (isa != Isa::generic) return kScanAvx2;
  return kScanGeneric;
}

}  // namespace fungi::search
