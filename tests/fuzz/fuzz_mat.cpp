// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a MATLAB file, asked for the variables of the published sets.
#include <cstdlib>

#include "fungi/base/error.h"
#include "fungi/input/mat_file.h"
#include "tests/support/folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fungi::dataset::MatFile;
  static const fungi::test::TemporaryFolder folder(fungi::test::place_in_memory());
  const auto path = folder.write("list.mat", {reinterpret_cast<const char*>(data), size});
  const auto ask = [](const auto& question) {
    try {
      question();
    } catch (const fungi::Error&) {
    }
  };
  ask([&] {
    const MatFile file(path);
    for (const char* name : {"labels", "trnid", "valid", "tstid"}) ask([&] { file.numbers(name); });
    ask([&] { file.texts("class_names"); });
    for (const char* field : {"class", "test"})
      ask([&] { file.field_numbers("annotations", field); });
    for (const char* field : {"fname", "relative_im_path"})
      ask([&] { file.field_texts("annotations", field); });
    ask([&] { file.field_numbers("synsets", "ILSVRC2012_ID"); });
    ask([&] { file.field_texts("synsets", "WNID"); });
  });
  return 0;
}
