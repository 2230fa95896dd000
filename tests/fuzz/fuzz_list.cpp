// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a list of pictures: CSV, TSV, JSON lines, plain text. The files
// that it names are not read.
#include "tests/fuzz/open_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* file : {"list.csv", "list.tsv", "list.jsonl", "list.txt"})
    fungi::open_bytes(file, {.kind = fungi::DatasetKind::list}, false, data, size);
  return 0;
}
