// SPDX-License-Identifier: Apache-2.0
// Linked with its own export_hdf5.cpp, compiled as where the HDF5 library is missing.
#include "fungi/store/export.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(ExportWithoutHdf5, SaysSo) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 5));
  EXPECT_FALSE(have_hdf5());
  EXPECT_ERROR("cannot write HDF5", export_hdf5(Store::open(tmp / "s"), tmp / "h5"));
  EXPECT_FALSE(std::filesystem::exists(tmp / "h5"));
}

}  // namespace
}  // namespace fungi::test
