// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a list of texts: CSV, TSV, JSON lines, plain lines; every text is
// read. What is stated of columns must not matter for safety either.
#include "tests/fuzz/open_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fungi::SampleKind;
  for (const char* file : {"texts.csv", "texts.tsv", "texts.jsonl", "texts.txt"})
    fungi::open_bytes(file, {.samples = SampleKind::text}, true, data, size);
  for (const char* file : {"stated.csv", "stated.tsv"})
    fungi::open_bytes(
        file,
        {.samples = SampleKind::text, .text_column = "2", .label_column = "none", .id_column = "1"},
        true, data, size);
  fungi::open_bytes("stated.jsonl", {.samples = SampleKind::text, .id_column = "id"}, true, data,
                    size);
  return 0;
}
