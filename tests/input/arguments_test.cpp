// SPDX-License-Identifier: Apache-2.0
// Samples that a program asks for and that are not there.
#include <gtest/gtest.h>

#include "fungi/input/dataset.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace fungi {
namespace {

TEST(DatasetArguments, SamplesMustBeThere) {
  const std::filesystem::path golden = FUNGI_GOLDEN_DIR "/input";
  const test::TemporaryFolder folder;
  test::write_idx(folder / "digits", 3);
  for (const auto& path : {golden / "images", golden / "shards" / "plain.tar", folder / "digits"}) {
    SCOPED_TRACE(path);
    const auto data = open_dataset(path);
    const size_t last = data->size() - 1;
    EXPECT_FALSE(data->read(last).empty());
    for (const size_t i : {data->size(), SIZE_MAX}) {
      EXPECT_ERROR("asked for sample", data->id(i));
      EXPECT_ERROR("asked for sample", data->label(i));
      EXPECT_ERROR("asked for sample", data->read(i));
      EXPECT_ERROR("asked for sample", data->image(i));
    }
  }
  const std::vector<uint8_t> few(5);
  EXPECT_ERROR("expected 400 bytes of pixels, found 5",
               open_dataset(folder / "digits")->decode(0, few));
}

}  // namespace
}  // namespace fungi
