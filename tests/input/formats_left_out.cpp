// SPDX-License-Identifier: Apache-2.0
// Linked with its own avif.cpp and heif.cpp, compiled as where their libraries are missing.
#include <gtest/gtest.h>

#include "fungi/base/error.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

TEST(FormatsLeftOut, AreNamedWithWhatToInstall) {
  const std::vector<std::string> every = {"JPEG", "PNG", "WebP", "TIFF", "BMP", "GIF"};
  EXPECT_EQ(image_formats(), every);
  const std::pair<std::string, std::string> left_out[] = {{"444.avif", "AVIF"},
                                                          {"444.heic", "HEIC"}};
  for (const auto& [file, format] : left_out) {
    try {
      read_image(std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/formats" / file);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("this build of fungi does not read " + format), said.npos) << said;
      EXPECT_NE(said.find(format == "AVIF" ? "libavif-dev" : "libheif-dev"), said.npos) << said;
    }
  }
}

}  // namespace
}  // namespace fungi
